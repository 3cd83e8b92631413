// Is a call of a compiled function like an earlier one?  `SameCall` of `capture/fast_guards.py` as one native call.
// Included by runtime.c.

typedef struct {
  PyArray_Descr *descr;
  int ndim, tracked;
  npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
} look;

typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject *kind;              // the class of tensors
  Py_ssize_t data, edge, link; // where they have these
  PyObject *values;            // the arguments, `kind` where a tensor is
  PyObject *held;              // (dict or cell, name) or (tensor, None) of further tensors
  PyObject *items, *tables;    // (dict or cell, name, what is there), (dict, all its values)
  Py_ssize_t count;            // of all tensors
  look *looks;
} SameCall;

static PyObject *slot_of(PyObject *t, Py_ssize_t offset) { return *(PyObject **)((char *)t + offset); }

// what is at a place, borrowed; null if nothing is
static PyObject *found_at(PyObject *place) {
  PyObject *owner = PyTuple_GET_ITEM(place, 0), *name = PyTuple_GET_ITEM(place, 1);
  if (PyCell_Check(owner)) return PyCell_GET(owner);
  if (!PyDict_Check(owner)) return owner;
  PyObject *found = PyDict_GetItemWithError(owner, name);
  if (!found) PyErr_Clear();
  return found;
}

static int plain(SameCall *a, PyObject *t) {
  if (!t || !PyObject_TypeCheck(t, (PyTypeObject *)a->kind)) return 0;
  PyObject *data = slot_of(t, a->data);
  return data && PyArray_CheckExact(data) && slot_of(t, a->edge) && slot_of(t, a->link) == Py_None;
}

static int looks_same(SameCall *a, const look *l, PyObject *t) {
  if (!plain(a, t) || (slot_of(t, a->edge) != Py_None) != l->tracked) return 0;
  PyArrayObject *x = (PyArrayObject *)slot_of(t, a->data);
  if (PyArray_NDIM(x) != l->ndim) return 0;
  if (PyArray_DESCR(x) != l->descr && !PyArray_EquivTypes(PyArray_DESCR(x), l->descr)) return 0;
  for (int i = 0; i < l->ndim; i++) {
    if (PyArray_DIM(x, i) != l->dims[i]) return 0;
    if (l->dims[i] > 1 && PyArray_STRIDE(x, i) != l->strides[i]) return 0;
  }
  return 1;
}

static int same_around(SameCall *a) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a->items); i++) {
    PyObject *item = PyTuple_GET_ITEM(a->items, i);
    if (found_at(item) != PyTuple_GET_ITEM(item, 2)) return 0;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a->tables); i++) {
    PyObject *pair = PyTuple_GET_ITEM(a->tables, i), *table = PyTuple_GET_ITEM(pair, 0), *value;
    PyObject *values = PyTuple_GET_ITEM(pair, 1);
    Py_ssize_t at = 0, k = 0, n = PyTuple_GET_SIZE(values);
    if (PyDict_GET_SIZE(table) != n) return 0;
    while (k < n && PyDict_Next(table, &at, NULL, &value))
      if (PyTuple_GET_ITEM(values, k++) != value) return 0;
  }
  return 1;
}

// the k-th of all tensors of a call, borrowed; arguments that are none are compared on the way
static PyObject *next_tensor(SameCall *a, PyObject *args, Py_ssize_t *arg, Py_ssize_t *k) {
  for (; *arg < PyTuple_GET_SIZE(args); ++*arg) {
    PyObject *given = PyTuple_GET_ITEM(args, *arg), *value = PyTuple_GET_ITEM(a->values, *arg);
    if (value == a->kind) return PyTuple_GET_ITEM(args, (*arg)++);
    if (given != value) return NULL;
  }
  return *k < PyTuple_GET_SIZE(a->held) ? found_at(PyTuple_GET_ITEM(a->held, (*k)++)) : NULL;
}

static PyObject *same_call_call(PyObject *self, PyObject *const *given, size_t nargsf, PyObject *names) {
  SameCall *a = (SameCall *)self;
  if (PyVectorcall_NARGS(nargsf) != 1 || names || !PyTuple_Check(given[0]))
    return PyErr_Format(PyExc_TypeError, "SameCall takes a tuple of arguments");
  PyObject *args = given[0];
  Py_ssize_t arg = 0, k = 0;
  if (PyTuple_GET_SIZE(args) != PyTuple_GET_SIZE(a->values) || !same_around(a)) Py_RETURN_NONE;
  PyObject *tensors = PyList_New(a->count), *arrays = PyList_New(a->count);
  if (!tensors || !arrays) goto failed;
  for (Py_ssize_t i = 0; i < a->count; i++) {
    PyObject *t = next_tensor(a, args, &arg, &k);
    if (!t || !looks_same(a, &a->looks[i], t)) goto other;
    PyList_SET_ITEM(tensors, i, Py_NewRef(t));
    PyList_SET_ITEM(arrays, i, Py_NewRef(slot_of(t, a->data)));
  }
  if (next_tensor(a, args, &arg, &k) || arg < PyTuple_GET_SIZE(args)) goto other;
  PyObject *both = PyTuple_New(2);
  if (!both) goto failed;
  PyTuple_SET_ITEM(both, 0, tensors);
  PyTuple_SET_ITEM(both, 1, arrays);
  return both;
other:
  Py_DECREF(tensors);
  Py_DECREF(arrays);
  Py_RETURN_NONE;
failed:
  Py_XDECREF(tensors);
  Py_XDECREF(arrays);
  return NULL;
}

#define EACH_(what) what(a->values); what(a->held); what(a->items); what(a->tables)

static int same_call_traverse(PyObject *self, visitproc visit, void *arg) {
  SameCall *a = (SameCall *)self;
  EACH_(Py_VISIT);
  return 0;
}

static int same_call_clear(PyObject *self) {
  SameCall *a = (SameCall *)self;
  EACH_(Py_CLEAR);
  return 0;
}

static void same_call_free(PyObject *self) {
  SameCall *a = (SameCall *)self;
  PyObject_GC_UnTrack(self);
  for (Py_ssize_t i = 0; a->looks && i < a->count; i++) Py_XDECREF(a->looks[i].descr);
  free(a->looks);
  same_call_clear(self);
  Py_XDECREF(a->kind);
  PyObject_GC_Del(self);
}

static PyTypeObject AlikeType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pullback.compile.SameCall",
    .tp_basicsize = sizeof(SameCall),
    .tp_dealloc = same_call_free,
    .tp_traverse = same_call_traverse,
    .tp_clear = same_call_clear,
    .tp_vectorcall_offset = offsetof(SameCall, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Is a call like an earlier one?  None, or its tensors and their arrays.",
};

static Py_ssize_t offset_of(PyObject *kind, const char *name) {
  PyObject *d = PyObject_GetAttrString(kind, name);
  if (d && !Py_IS_TYPE(d, &PyMemberDescr_Type))
    PyErr_Format(PyExc_TypeError, "%s is not a slot", name);
  Py_ssize_t offset = PyErr_Occurred() ? -1 : ((PyMemberDescrObject *)d)->d_member->offset;
  Py_XDECREF(d);
  return offset;
}

static int read_look(SameCall *a, look *l, PyObject *t) {
  if (!plain(a, t)) {
    PyErr_SetString(PyExc_TypeError, "SameCall wants tensors with memory of their own");
    return -1;
  }
  PyArrayObject *x = (PyArrayObject *)slot_of(t, a->data);
  l->descr = (PyArray_Descr *)Py_NewRef((PyObject *)PyArray_DESCR(x));
  l->ndim = PyArray_NDIM(x);
  l->tracked = slot_of(t, a->edge) != Py_None;
  for (int i = 0; i < l->ndim; i++) {  // where there are none, these are null
    l->dims[i] = PyArray_DIM(x, i);
    l->strides[i] = PyArray_STRIDE(x, i);
  }
  return 0;
}

// same_call(class of tensors, arguments, held, items, tables)
static PyObject *make_same_call(PyObject *module, PyObject *args) {
  PyObject *kind, *given, *held, *items, *tables;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyType_Type, &kind, &PyTuple_Type, &given, &PyTuple_Type, &held,
                        &PyTuple_Type, &items, &PyTuple_Type, &tables))
    return NULL;
  SameCall *a = PyObject_GC_New(SameCall, &AlikeType);
  if (!a) return NULL;
  memset((char *)a + sizeof(PyObject), 0, sizeof(SameCall) - sizeof(PyObject));
  Py_ssize_t n = PyTuple_GET_SIZE(given), tensors = 0;
  a->call = same_call_call;
  a->kind = Py_NewRef(kind);
  a->held = Py_NewRef(held);
  a->items = Py_NewRef(items);
  a->tables = Py_NewRef(tables);
  a->values = PyTuple_New(n);
  a->looks = calloc((size_t)(n + PyTuple_GET_SIZE(held)) + 1, sizeof(look));
  a->data = offset_of(kind, "_payload");
  a->edge = offset_of(kind, "_edge");
  a->link = offset_of(kind, "_link");
  PyObject_GC_Track(a);
  if (!a->values || !a->looks || PyErr_Occurred()) goto failed;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *value = PyTuple_GET_ITEM(given, i);
    int tensor = PyObject_TypeCheck(value, (PyTypeObject *)kind);
    PyTuple_SET_ITEM(a->values, i, Py_NewRef(tensor ? kind : value));
    if (tensor && read_look(a, &a->looks[a->count++], value)) goto failed;
  }
  for (; tensors < PyTuple_GET_SIZE(held); tensors++)
    if (read_look(a, &a->looks[a->count++], found_at(PyTuple_GET_ITEM(held, tensors)))) goto failed;
  return (PyObject *)a;
failed:
  Py_DECREF(a);
  return NULL;
}
