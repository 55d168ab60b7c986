/* The loop over the clients of a group: the same bytes to each of them, by its descriptor.
 *
 * A client without unsent bytes needs nothing of its transport: one system call gives the bytes to the kernel. Python's
 * loop and the transport's `write` take about a sixth of a delivery, most of it to fetch objects into the processor's
 * cache. To ask each transport for its unsent bytes alone takes a tenth. So a transport lends its descriptor to the client
 * while it has no unsent bytes, and this loop touches one attribute of a client. Everything unusual is left to Python,
 * which loses nothing by it: no byte was sent then.
 *
 * Dangers:
 * - The number of a closed descriptor may be that of another connection by now. `client.descriptor` is one only while the
 *   transport is open (see `StreamConnection.lend_descriptor`), and no Python code runs between reading it and `send`.
 * - Bytes must not overtake what the transport has not sent yet: `client.descriptor` is -1 then.
 * - When the kernel takes a part, the client must get the rest or nothing more at all.
 *
 * It uses the limited API of Python 3.11, so one build serves all later versions. Its state is two constant objects. To
 * make them anew in each call took a sixth of the time that a delivery to a group of one client takes outside the kernel.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <errno.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: Python ignores SIGPIPE */
#endif

/* Give what the kernel did not take to the transport, which sends it later. */
static void
write_rest(PyObject *client, int descriptor, const char *rest, Py_ssize_t size)
{
    PyObject *write = PyObject_GetAttrString(client, "write");
    PyObject *bytes = write == NULL ? NULL : PyBytes_FromStringAndSize(rest, size);
    PyObject *written = bytes == NULL ? NULL : PyObject_CallFunctionObjArgs(write, bytes, NULL);
    if (written == NULL) { /* out of memory: end the connection, because the next bytes would follow half a message */
        PyErr_Clear();
        shutdown(descriptor, SHUT_RDWR);
    }
    Py_XDECREF(written);
    Py_XDECREF(bytes);
    Py_XDECREF(write);
}

/* Return whether the client got the data, 0 if it got none of them, or -1 with an exception. */
static int
send_to(PyObject *client, PyObject *name, const char *data, Py_ssize_t size)
{
    PyObject *number = PyObject_GetAttr(client, name);
    if (number == NULL)
        return -1;
    long descriptor = PyLong_AsLong(number);
    Py_DECREF(number);
    if (descriptor < 0)
        return PyErr_Occurred() ? -1 : 0;
    ssize_t sent = send((int)descriptor, data, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) /* no room, an interrupt, or the client has left: the transport finds the same */
        return 0;
    if (sent < size)
        write_rest(client, (int)descriptor, data + sent, size - sent);
    return 1;
}

typedef struct {
    PyObject *descriptor, *nobody; /* the name of the attribute; the answer if all clients got the data */
} State;

static PyObject *
send_to_each(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    State *state = PyModule_GetState(module);
    char *data;
    Py_ssize_t size;
    if (count != 2 || !PyTuple_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "send_to_each needs a tuple of clients, and bytes");
        return NULL;
    }
    PyObject *clients = arguments[0], *left = NULL;
    if (PyBytes_AsStringAndSize(arguments[1], &data, &size) < 0)
        return NULL;
    Py_ssize_t length = PyTuple_Size(clients);
    for (Py_ssize_t at = 0; at < length; at++) {
        PyObject *client = PyTuple_GetItem(clients, at); /* borrowed from the tuple, which the caller holds */
        int done = send_to(client, state->descriptor, data, size);
        if (!done && left == NULL && (left = PyList_New(0)) == NULL)
            return NULL;
        if (done < 0 || (!done && PyList_Append(left, client) < 0)) {
            Py_XDECREF(left);
            return NULL;
        }
    }
    return left != NULL ? left : Py_NewRef(state->nobody);
}

static int
visit_state(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->descriptor);
    Py_VISIT(state->nobody);
    return 0;
}

static int
clear_state(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->descriptor);
    Py_CLEAR(state->nobody);
    return 0;
}

static PyMethodDef methods[] = {
    {"send_to_each", (PyCFunction)(void (*)(void))send_to_each, METH_FASTCALL,
     "send_to_each(clients, data)\n--\n\nSend to the clients without unsent bytes. Return the others."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "send_to_each", .m_doc = "The loop over the clients of a group.",
    .m_size = sizeof(State), .m_methods = methods, .m_traverse = visit_state, .m_clear = clear_state,
};

PyMODINIT_FUNC
PyInit_send_to_each(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    State *state = PyModule_GetState(module);
    state->descriptor = PyUnicode_InternFromString("descriptor");
    state->nobody = PyTuple_New(0);
    if (state->descriptor == NULL || state->nobody == NULL)
        Py_CLEAR(module);
    return module;
}
