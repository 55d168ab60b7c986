/* The floor of the benchmarks: the least that a server must do to bring each post to each of its clients.
 *
 *     floor --socket REDIS_SOCKET [--batch]
 *
 * One epoll loop subscribes to the channel of posts in Redis. It frames each post as our server does (chunk, id, event,
 * data: the same number of bytes) and calls send(2) once for each client and event. With --batch it joins all events
 * of one read from Redis and calls send(2) once for each client and read.
 *
 * A client whose request has the word "topic" and a digit receives only the posts of this topic; the floor looks for the
 * word in the post. It has no tokens, filters, cursors, heartbeats or replay. It keeps what a socket does not take at
 * once, as every server must.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TOPICS = 10, EVERYTHING = TOPICS, GROUPS, MOST_FILES = 1 << 17, AT_ONCE = 512, HEAD_BYTES = 4096 };

typedef struct { char *data; size_t used, room; } Buffer;

typedef struct {
    int group, seat;     /* -1 until the request is complete */
    Buffer unsent, head; /* what the socket did not take; the request */
} Client;

typedef struct { int *files; int count, room; } Group;

static Client *clients[MOST_FILES];
static Group groups[GROUPS];
static Buffer framed[GROUPS], from_redis;
static int epoll_fd, batch;

static const char RESPONSE[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-store\r\n"
    "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *checked(void *memory) {
    if (!memory) fail("memory");
    return memory;
}

static void reserve(Buffer *buffer, size_t more) {
    if (buffer->used + more <= buffer->room) return;
    buffer->room = (buffer->used + more) * 2;
    buffer->data = checked(realloc(buffer->data, buffer->room));
}

static void add(Buffer *buffer, const char *data, size_t size) {
    reserve(buffer, size);
    memcpy(buffer->data + buffer->used, data, size);
    buffer->used += size;
}

static void add_text(Buffer *buffer, const char *text) { add(buffer, text, strlen(text)); }

static void consume(Buffer *buffer, size_t size) {
    buffer->used -= size;
    memmove(buffer->data, buffer->data + size, buffer->used);
}

static void watch(int action, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll_fd, action, fd, &event)) fail("epoll_ctl");
}

/* Clients. */

static void join(int fd, int number) {
    Group *group = &groups[number];
    if (group->count == group->room) {
        group->room = group->room ? group->room * 2 : 64;
        group->files = checked(realloc(group->files, sizeof(int) * (size_t)group->room));
    }
    clients[fd]->group = number;
    clients[fd]->seat = group->count;
    group->files[group->count++] = fd;
}

static void leave(int fd) {
    Client *client = clients[fd];
    if (client->group >= 0) {
        Group *group = &groups[client->group];
        int last = group->files[--group->count];
        group->files[client->seat] = last;
        clients[last]->seat = client->seat;
    }
    free(client->unsent.data);
    free(client->head.data);
    free(client);
    clients[fd] = NULL;
    close(fd);
}

/* Sends, and keeps what the socket does not take. A broken connection is noticed when it is read. */
static void deliver(int fd, const char *data, size_t size) {
    Client *client = clients[fd];
    if (client->unsent.used) {
        add(&client->unsent, data, size);
        return;
    }
    ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent == (ssize_t)size || (sent < 0 && errno != EAGAIN)) return;
    if (sent < 0) sent = 0;
    add(&client->unsent, data + sent, size - (size_t)sent);
    watch(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
}

static void send_unsent(int fd) {
    Buffer *unsent = &clients[fd]->unsent;
    ssize_t sent = send(fd, unsent->data, unsent->used, MSG_NOSIGNAL);
    if (sent > 0) consume(unsent, (size_t)sent);
    if (!unsent->used || (sent < 0 && errno != EAGAIN)) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
}

static void take_request(int fd) {
    char data[HEAD_BYTES];
    ssize_t got = recv(fd, data, sizeof data, 0);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) leave(fd);
        return;
    }
    Client *client = clients[fd];
    if (client->group >= 0) return; /* a client of a stream says nothing more */
    add(&client->head, data, (size_t)got);
    if (!memmem(client->head.data, client->head.used, "\r\n\r\n", 4)) return;
    const char *topic = memmem(client->head.data, client->head.used, "topic", 5);
    join(fd, topic && topic[5] >= '0' && topic[5] <= '9' ? topic[5] - '0' : EVERYTHING);
    deliver(fd, RESPONSE, sizeof RESPONSE - 1);
}

static void accept_all(int listener) {
    int fd, yes = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= MOST_FILES) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        clients[fd] = checked(calloc(1, sizeof(Client)));
        clients[fd]->group = -1;
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

/* Events. */

static void flush(void) {
    for (int number = 0; number < GROUPS; number++) {
        for (int at = 0; framed[number].used && at < groups[number].count; at++)
            deliver(groups[number].files[at], framed[number].data, framed[number].used);
        framed[number].used = 0;
    }
}

/* Returns what stands between `start` and `end`, or an empty text. */
static const char *between(const char *data, size_t size, const char *start, const char *end, size_t *length) {
    const char *found = memmem(data, size, start, strlen(start));
    *length = 0;
    if (!found) return data;
    found += strlen(start);
    const char *stop = memmem(found, size - (size_t)(found - data), end, strlen(end));
    *length = stop ? (size_t)(stop - found) : 0;
    return found;
}

/* Frames one post. It arrives as "<id> <n> <kind> <audience> {"wire":{...},"facts":{...}...}". */
static void frame(const char *message, size_t size) {
    static Buffer event;
    char cursor[128], chunk[32];
    size_t wire_size, at_size, text_size;
    const char *space = memchr(message, ' ', size);
    const char *next = space ? memchr(space + 1, ' ', size - (size_t)(space + 1 - message)) : NULL;
    const char *wire = between(message, size, "\"wire\":{", "},\"facts\":", &wire_size);
    const char *at = between(wire, wire_size, "\"posted\":\"", "\"", &at_size);
    const char *text = between(wire, wire_size, "\"message\":\"topic", " ", &text_size);
    if (!next || !wire_size || next - message > 100) return;
    snprintf(cursor, sizeof cursor, "%.*s.%.*s", (int)(space - message), message, (int)(next - space - 1), space + 1);
    event.used = 0;
    add_text(&event, "id: ");
    add_text(&event, cursor);
    add_text(&event, "\nevent: post\ndata: {\"kind\":\"post\",\"cursor\":\"");
    add_text(&event, cursor);
    add_text(&event, "\",\"at\":\"");
    add(&event, at, at_size);
    add_text(&event, "\",");
    add(&event, wire, wire_size);
    add_text(&event, "}\n\n");
    snprintf(chunk, sizeof chunk, "%zx\r\n", event.used);
    int topic = text_size ? text[0] - '0' : EVERYTHING;
    for (int number = 0; number < GROUPS; number++) {
        if (number != topic && number != EVERYTHING) continue;
        add_text(&framed[number], chunk);
        add(&framed[number], event.data, event.used);
        add_text(&framed[number], "\r\n");
    }
    if (!batch) flush();
}

/* Reads one line of RESP as a number after its type, and moves on. Returns 0 if the line is not complete. */
static int line(const char **at, const char *end, char *type, long *number) {
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop) return 0;
    *type = **at;
    *number = strtol(*at + 1, NULL, 10);
    *at = stop + 1;
    return 1;
}

/* Takes one push of three parts. Returns its size, or 0 if it is not complete. */
static size_t take_push(const char *data, size_t size) {
    const char *at = data, *end = data + size, *last = NULL;
    char type;
    long number, length = 0;
    if (!size || !line(&at, end, &type, &number)) return 0;
    for (long part = type == '*' ? number : 0; part > 0; part--) {
        if (at >= end || !line(&at, end, &type, &number)) return 0;
        if (type != '$') continue;
        if (end - at < number + 2) return 0;
        last = at;
        length = number;
        at += number + 2;
    }
    if (last && length > 100) frame(last, (size_t)length); /* the name of the channel is shorter */
    return (size_t)(at - data);
}

static void hear(int redis) {
    size_t used, taken = 0;
    reserve(&from_redis, 1 << 20);
    ssize_t got = recv(redis, from_redis.data + from_redis.used, from_redis.room - from_redis.used, 0);
    if (got <= 0) {
        if (got < 0 && errno == EAGAIN) return;
        exit(0); /* the run is over */
    }
    from_redis.used += (size_t)got;
    while ((used = take_push(from_redis.data + taken, from_redis.used - taken))) taken += used;
    consume(&from_redis, taken);
    flush();
}

static int subscribe(const char *path) {
    static const char COMMAND[] = "SUBSCRIBE events:post\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path) exit(2);
    strcpy(address.sun_path, path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) fail(path);
    if (write(fd, COMMAND, sizeof COMMAND - 1) < 0) fail("subscribe");
    return fd;
}

static int listen_somewhere(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 4096)) fail("listen");
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int count, char **arguments) {
    const char *path = NULL;
    for (int at = 1; at < count; at++) {
        if (!strcmp(arguments[at], "--batch")) batch = 1;
        else if (!strcmp(arguments[at], "--socket") && at + 1 < count) path = arguments[++at];
    }
    if (!path) {
        fputs("usage: floor --socket REDIS_SOCKET [--batch]\n", stderr);
        return 2;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int redis = subscribe(path), listener = listen_somewhere();
    watch(EPOLL_CTL_ADD, redis, EPOLLIN);
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    struct epoll_event events[AT_ONCE];
    for (;;) {
        int ready = epoll_wait(epoll_fd, events, AT_ONCE, -1);
        for (int at = 0; at < ready; at++) {
            int fd = events[at].data.fd;
            if (fd == redis) hear(redis);
            else if (fd == listener) accept_all(listener);
            else {
                if (events[at].events & EPOLLOUT) send_unsent(fd);
                if (events[at].events & ~(unsigned)EPOLLOUT) take_request(fd);
            }
        }
    }
}
