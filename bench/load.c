/* The clients of the benchmarks: many HTTP connections in one process with one epoll set.
 *
 *     load streams  --port P --pid SERVER --requests FILE --conns N --settle S --warmup S --duration S
 *     load requests --port P --pid SERVER --requests FILE --conns N --warmup S --duration S
 *
 * FILE has one request a line: method and path separated by a blank, then headers, each after a tab. A last part that
 * begins with @ is the body. Connection k uses line k; with `requests` each connection goes on through the file.
 *
 * `streams` opens N streams, says "ready" on standard error, and counts the events that arrive. An event carries
 * "t":<digits>, the nanoseconds of CLOCK_MONOTONIC before it was posted. If another server opens a WebSocket (101), an event
 * carries "time_us":<digits>, the microseconds of the wall clock, as Jetstream sends it. `requests` sends again as soon as the answer
 * is complete. Both print one line of JSON. CPU times come from the kernel's clock of the server's process, so they are
 * exact to nanoseconds; `client_cpu_share` and `core_busy_share` show how near the clients and their core were to
 * their limits.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_FILES = 1 << 17, AT_ONCE = 512, OPENING = 128, READ_BYTES = 1 << 18, CARRY = 32, HEAD_BYTES = 8192,
    BUCKETS = 1 << 20, BUCKET_US = 10
};

typedef struct { char *text; int size; } Request;
typedef struct {
    int number, next, open; /* which connection; the next line of the file; whether the head of the answer is read */
    int used;               /* bytes in `kept`: of an unfinished head, or the end of a read that may cut a mark */
    long missing;           /* bytes of the answer's body that have not come */
    double sent;
    char *kept;
} Client;

static Client *clients[MOST_FILES];
static Request *lines;
static int line_count, conns = 1, port, epoll_fd, streaming, measuring, wall_marks;
static int started, opened, refused, closed_early, opening;
static long events, reads, answers, bytes;
static unsigned histogram[BUCKETS];
static pid_t server;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now_s(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double wall_s(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double clock_s(pid_t pid) {
    clockid_t clock;
    struct timespec at;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &at)) return 0;
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Idle seconds of the core on which this process runs, since the machine started. */
static double idle_s(void) {
    char row[512], name[32];
    double idle = 0;
    long user, nice, system, idling, waiting;
    FILE *file = fopen("/proc/stat", "r");
    snprintf(name, sizeof name, "cpu%d ", sched_getcpu());
    while (file && fgets(row, sizeof row, file))
        if (!strncmp(row, name, strlen(name)) &&
            sscanf(row + strlen(name), "%ld %ld %ld %ld %ld", &user, &nice, &system, &idling, &waiting) == 5)
            idle = (double)(idling + waiting) / (double)sysconf(_SC_CLK_TCK);
    if (file) fclose(file);
    return idle;
}

/* Anonymous and shared memory of the server in KiB. */
static long memory_kib(void) {
    char path[64], row[256];
    long sum = 0;
    snprintf(path, sizeof path, "/proc/%d/status", server);
    FILE *file = fopen(path, "r");
    while (file && fgets(row, sizeof row, file))
        if (!strncmp(row, "RssAnon:", 8) || !strncmp(row, "RssShmem:", 9)) sum += atol(strchr(row, ':') + 1);
    if (file) fclose(file);
    return sum;
}

static void note_delay(double seconds) {
    long bucket = (long)(seconds * 1e6) / BUCKET_US;
    histogram[bucket < 0 ? 0 : bucket >= BUCKETS ? BUCKETS - 1 : bucket]++;
}

static double quantile_ms(long total, double share) {
    long rest = (long)(share * (double)(total - 1)) + 1;
    if (!total) return 0;
    for (long bucket = 0; bucket < BUCKETS; bucket++)
        if ((rest -= histogram[bucket]) <= 0) return ((double)bucket + 0.5) * BUCKET_US / 1000;
    return 0;
}

/* Requests. */

static void read_requests(const char *path) {
    char *row = NULL;
    size_t room = 0;
    ssize_t size;
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    while ((size = getline(&row, &room, file)) > 0) {
        char *body = "", *rest = row, *part, *out = malloc((size_t)size + 256);
        row[strcspn(row, "\n")] = 0;
        int used = sprintf(out, "%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", strsep(&rest, "\t"), port);
        while ((part = strsep(&rest, "\t"))) {
            if (*part == '@') body = part + 1;
            else used += sprintf(out + used, "%s\r\n", part);
        }
        if (*body) used += sprintf(out + used, "Content-Length: %zu\r\n", strlen(body));
        used += sprintf(out + used, "\r\n%s", body);
        lines = realloc(lines, sizeof(Request) * (size_t)(line_count + 1));
        lines[line_count++] = (Request){out, used};
    }
    fclose(file);
    if (!line_count) exit(2);
}

static void ask(int fd) {
    Client *client = clients[fd];
    Request *line = &lines[client->next % line_count];
    client->next += conns;
    client->sent = now_s();
    if (send(fd, line->text, (size_t)line->size, MSG_NOSIGNAL) != line->size) fail("send");
}

static void start(void) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLOUT};
    int fd = event.data.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || fd >= MOST_FILES) fail("socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) fail("connect");
    clients[fd] = calloc(1, sizeof(Client));
    clients[fd]->kept = malloc(HEAD_BYTES);
    clients[fd]->number = clients[fd]->next = started++;
    opening++;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
}

static void connected(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        errno = error;
        fail("connect");
    }
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event)) fail("epoll_ctl");
    ask(fd);
}

static void lose(int fd) {
    if (!clients[fd]->open) opening--;
    closed_early++;
    close(fd);
}

/* Answers. */

/* Counts the marks in one read. What the end of the read may have cut is kept for the next one. */
static void count_marks(Client *client, char *data, long size) {
    const char *sign = wall_marks ? "\"time_us\":" : "\"t\":";
    long length = (long)strlen(sign);
    double now = wall_marks ? wall_s() : now_s();
    char *at = data, *end = data + size, *mark, *stop;
    while ((mark = memmem(at, (size_t)(end - at), sign, (size_t)length))) {
        for (stop = mark + length; stop < end && *stop >= '0' && *stop <= '9'; stop++);
        if (stop == end) break;
        if (measuring) {
            events++;
            note_delay(now - (double)strtoll(mark + length, NULL, 10) / (wall_marks ? 1e6 : 1e9));
        }
        at = stop;
    }
    if (!mark) mark = end - at > length - 1 ? end - length + 1 : at;
    client->used = end - mark < CARRY ? (int)(end - mark) : 0;
    memcpy(client->kept, mark, (size_t)client->used);
}

static void finish_answer(int fd) {
    Client *client = clients[fd];
    if (measuring) {
        answers++;
        note_delay(now_s() - client->sent);
    }
    client->used = client->open = 0;
    ask(fd);
}

/* Reads the head of an answer. `data` begins with what was kept of it. */
static void take_head(int fd, char *data, long size) {
    Client *client = clients[fd];
    char *end = memmem(data, (size_t)size, "\r\n\r\n", 4);
    if (!end) {
        if (size >= HEAD_BYTES) exit(3);
        memcpy(client->kept, data, (size_t)size);
        client->used = (int)size;
        return;
    }
    *end = 0;
    int switched = !strncmp(data + 9, "101", 3);
    if (switched && !strstr(data, "Server: stream-server")) wall_marks = 1;
    if (data[9] != '2' && !switched) {
        if (!refused++) fprintf(stderr, "refused: %.400s\n", data);
    } else if (client->next == client->number + conns) opened++;
    if (client->next == client->number + conns) opening--;
    char *length = strcasestr(data, "\r\nContent-Length:");
    client->open = 1;
    client->used = 0;
    long rest = size - (end + 4 - data);
    if (streaming) {
        count_marks(client, end + 4, rest);
        return;
    }
    client->missing = (length ? atol(length + 17) : 0) - rest;
    if (client->missing <= 0) finish_answer(fd);
}

static void take(int fd) {
    static char data[READ_BYTES + HEAD_BYTES + 1];
    Client *client = clients[fd];
    memcpy(data, client->kept, (size_t)client->used);
    ssize_t got = recv(fd, data + client->used, READ_BYTES, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        lose(fd);
        return;
    }
    long size = client->used + got;
    data[size] = 0;
    if (measuring) {
        reads++;
        bytes += got;
    }
    if (!client->open) take_head(fd, data, size);
    else if (streaming) count_marks(client, data, size);
    else if ((client->missing -= got) <= 0) finish_answer(fd);
}

static void poll_once(void) {
    struct epoll_event ready[AT_ONCE];
    int count = epoll_wait(epoll_fd, ready, AT_ONCE, 20);
    for (int at = 0; at < count; at++) {
        if (ready[at].events & EPOLLOUT) connected(ready[at].data.fd);
        else take(ready[at].data.fd);
    }
}

static double run(double seconds) {
    double begin = now_s();
    while (now_s() < begin + seconds) poll_once();
    return now_s() - begin;
}

static double connect_all(void) {
    double begin = now_s();
    while (opened + refused + closed_early < conns && now_s() < begin + 60) {
        while (started < conns && opening < OPENING) start();
        poll_once();
    }
    return now_s() - begin;
}

/* Prints the figures. `cpu`, `own` and `idle` are the values at the start of the window, later their differences. */
static void measure(double settle, double warmup, double duration) {
    long before = memory_kib();
    double opening_cpu = clock_s(server), opening_own = clock_s(0), connecting = connect_all();
    opening_cpu = clock_s(server) - opening_cpu;
    opening_own = clock_s(0) - opening_own;
    run(settle);
    long after = memory_kib();
    fprintf(stderr, "ready %d of %d\n", opened, conns);
    run(warmup);
    double cpu = clock_s(server), own = clock_s(0), idle = idle_s();
    measuring = 1;
    double seconds = run(duration);
    measuring = 0;
    cpu = clock_s(server) - cpu;
    own = clock_s(0) - own;
    idle = idle_s() - idle;
    long total = streaming ? events : answers;
    printf("{\"opened\": %d, \"refused\": %d, \"closed_early\": %d, \"open_per_s\": %.1f, \"open_cpu_s\": %.6f, "
           "\"open_client_share\": %.4f, \"kib_per_idle_conn\": %.3f, ",
           opened, refused, closed_early, opened / connecting, opening_cpu, opening_own / connecting,
           (double)(after - before) / (opened ? opened : 1));
    printf("\"seconds\": %.6f, \"count\": %ld, \"server_cpu_s\": %.6f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"joined\": %.3f, \"bytes\": %ld, \"client_cpu_share\": %.4f, \"core_busy_share\": %.4f}\n",
           seconds, total, cpu, quantile_ms(total, 0.50), quantile_ms(total, 0.99),
           (double)total / (double)(reads ? reads : 1), bytes, duration > 0 ? own / seconds : 0,
           duration > 0 && idle < seconds ? 1 - idle / seconds : 0);
}

int main(int count, char **arguments) {
    double settle = 0, warmup = 0, duration = 0;
    const char *path = NULL;
    for (int at = 2; at + 1 < count; at += 2) {
        const char *name = arguments[at], *value = arguments[at + 1];
        if (!strcmp(name, "--port")) port = atoi(value);
        else if (!strcmp(name, "--pid")) server = atoi(value);
        else if (!strcmp(name, "--conns")) conns = atoi(value);
        else if (!strcmp(name, "--requests")) path = value;
        else if (!strcmp(name, "--settle")) settle = atof(value);
        else if (!strcmp(name, "--warmup")) warmup = atof(value);
        else if (!strcmp(name, "--duration")) duration = atof(value);
    }
    streaming = count > 1 && !strcmp(arguments[1], "streams");
    if (!path || !port || !server || (!streaming && strcmp(arguments[1], "requests"))) {
        fputs("usage: load streams|requests --port P --pid SERVER --requests FILE --conns N ...\n", stderr);
        return 2;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    read_requests(path);
    measure(settle, warmup, duration);
    return 0;
}
