// The callable behind a compiled graph: checks its arguments, fills the table of buffers, runs the
// stages of the generated unit (and the steps that need Python between them), returns the outputs.
// Included by runtime.c.  The layout of the constructor's arguments is described in `unit.py`.

typedef struct {
  int type, ndim, same;  // same: expected strides are those of a C-contiguous array
  npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS], size;
} spec;

// PLACED and TAKEN: in the memory of an input that nobody needs any more; the latter are outputs.
// HOSTED: in that of an output that is not written yet.
enum { BUF_INPUT, BUF_OUTPUT, BUF_WORK, BUF_EXTERN, BUF_CONST, BUF_PLACED, BUF_TAKEN, BUF_HOSTED };
typedef struct {
  int kind;
  int64_t at;      // input number, workspace offset, number of the host
  int64_t bytes;   // of PLACED and HOSTED: the offset there
  spec s;          // of outputs and extern results
  PyObject *value; // of constants
} buffer;

enum { OUT_BUFFER, OUT_INPUT, OUT_VALUE };
typedef struct {
  int kind, whole;  // whole: the array itself, not a view of it
  int64_t at, offset;
  spec s;
  PyObject *value;
} output;

typedef struct {
  void (*stage)(void **);  // native part, or null
  int release;             // give the GIL away
  PyObject *fn;            // Python part: called with views of buffers
  int nargs, nresults;
  struct { int64_t buf, offset; spec s; } *args;
  int64_t *results;
  int nfrees;
  int64_t *frees;          // buffers that nothing reads after this step; from nbuf on: inputs in whose
                           // memory nothing is after it
  int nmakes;
  int64_t *makes;          // outputs that are first needed in it, each before what it hosts
} step;

typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  void *handle;
  PyObject *name, *conform, *checks;
  int nin, nbuf, nout, nsteps;
  int hosts;        // are there HOSTED buffers?
  int late;         // is each output made by the step that first needs it?
  int tight;        // is the workspace given back, and not kept for the next call?
  spec *in;
  buffer *buf;
  output *out;
  step *steps;
  int64_t workspace;
  int64_t *room;    // per input: bytes of it that other buffers take, when it is given away
  char *written;    // per input: its memory takes an output
  char **last;      // where inputs were in the last call, if that is known to be fine
} Function;

static void fill_strides(spec *s, PyObject *strides) {
  PyArray_Descr *d = PyArray_DescrFromType(s->type);
  npy_intp item = PyDataType_ELSIZE(d), run = item;
  Py_DECREF(d);
  s->same = 1;
  for (int i = s->ndim - 1; i >= 0; i--) {
    npy_intp want = strides && strides != Py_None ? PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i)) : run;
    if (s->dims[i] > 1 && want != run) s->same = 0;
    s->strides[i] = want;
    run *= s->dims[i];
  }
  s->size = run / item;
}

// (type number, shape, strides or None)
static int read_spec(PyObject *t, spec *s) {
  PyObject *shape = PyTuple_GET_ITEM(t, 1);
  s->type = (int)PyLong_AsLong(PyTuple_GET_ITEM(t, 0));
  s->ndim = (int)PyTuple_GET_SIZE(shape);
  if (s->ndim > NPY_MAXDIMS) {
    PyErr_SetString(PyExc_ValueError, "too many dimensions");
    return -1;
  }
  for (int i = 0; i < s->ndim; i++) s->dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
  fill_strides(s, PyTuple_GET_ITEM(t, 2));
  return PyErr_Occurred() ? -1 : 0;
}

static inline int fits(PyObject *o, const spec *s) {
  if (!PyArray_CheckExact(o)) return 0;
  PyArrayObject *a = (PyArrayObject *)o;
  if (PyArray_TYPE(a) != s->type || PyArray_NDIM(a) != s->ndim) return 0;
  const npy_intp *dims = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
  for (int i = 0; i < s->ndim; i++)
    if (dims[i] != s->dims[i]) return 0;
  if (s->size > 1)
    for (int i = 0; i < s->ndim; i++)
      if (dims[i] > 1 && strides[i] != s->strides[i]) return 0;
  return (PyArray_FLAGS(a) & (NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED)) ==
         (NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED) || PyArray_ISBEHAVED_RO(a);
}

// the bytes of an array: from *low to before *high
static void extent(PyObject *o, char **low, char **high) {
  PyArrayObject *a = (PyArrayObject *)o;
  *low = *high = PyArray_DATA(a);
  if (!PyArray_SIZE(a)) return;
  for (int i = 0; i < PyArray_NDIM(a); i++) {
    npy_intp far = (PyArray_DIM(a, i) - 1) * PyArray_STRIDE(a, i);
    if (far < 0) *low += far;
    else *high += far;
  }
  *high += PyArray_ITEMSIZE(a);
}

// Inputs that are overwritten must be writeable and share no memory with others; one that is not gets a
// copy, which is then among the outputs.  Inputs that are where they were are not compared again.
static int settle_written(Function *f, PyObject **given) {
  for (int i = 0; i < f->nin; i++) {
    int alone = !f->written[i] || PyArray_ISWRITEABLE((PyArrayObject *)given[i]);
    if (alone && f->last[i] == PyArray_DATA((PyArrayObject *)given[i])) continue;
    char *low, *high, *from, *to;
    extent(given[i], &low, &high);
    for (int k = 0; alone && k < f->nin; k++) {
      if (k == i || !(f->written[i] || f->written[k])) continue;
      extent(given[k], &from, &to);
      alone = high <= from || to <= low;
    }
    f->last[i] = alone ? PyArray_DATA((PyArrayObject *)given[i]) : NULL;
    if (alone) continue;
    for (int k = 0; k < f->nin; k++) {  // make room: copies of all that are overwritten here
      extent(given[k], &from, &to);
      int meets = k == i || !(high <= from || to <= low);
      if (!f->written[k] || !meets) continue;
      PyObject *copy = PyArray_NewCopy((PyArrayObject *)given[k], NPY_CORDER);
      if (!copy) return -1;
      Py_SETREF(given[k], copy);
      f->last[k] = NULL;
    }
  }
  return 0;
}

static void give_back(PyObject *capsule) { pb_free(PyCapsule_GetPointer(capsule, PB_MEMORY)); }

// a new array; large ones live in the caching allocator and return there
static PyObject *fresh(const spec *s, int64_t bytes) {
  if (bytes < (64 << 10)) return PyArray_SimpleNew(s->ndim, s->dims, s->type);
  void *data = pb_alloc((size_t)bytes);
  if (!data) return PyErr_NoMemory();
  PyObject *a = PyArray_SimpleNewFromData(s->ndim, s->dims, s->type, data);
  PyObject *owner = a ? PyCapsule_New(data, PB_MEMORY, give_back) : NULL;
  if (!owner) {
    Py_XDECREF(a);
    pb_free(data);
    return NULL;
  }
  if (PyArray_SetBaseObject((PyArrayObject *)a, owner) < 0) {
    Py_DECREF(a);
    return NULL;
  }
  return a;
}

// One workspace is kept for all graphs: they run one after the other.  Touched with the GIL only.
static struct {
  void *data;
  int64_t bytes;
} kept_;

static void *take_workspace(int64_t bytes, int64_t *got) {
  void *data = kept_.data;
  *got = kept_.bytes;
  kept_.data = NULL;
  kept_.bytes = 0;
  if (data && *got >= bytes) return used_again(data, (size_t)bytes);
  if (data) pb_release(data);
  *got = bytes;
  return pb_alloc((size_t)bytes);
}

static void keep_workspace(void *data, int64_t bytes) {
  if (kept_.bytes >= bytes) {
    pb_free(data);
    return;
  }
  if (kept_.data) pb_release(kept_.data);
  kept_.data = data;
  kept_.bytes = bytes;
}

// An array on memory that a capsule owns.
static PyObject *array_of(const spec *s, PyObject *owner, void *data) {
  PyObject *a = PyArray_SimpleNewFromData(s->ndim, (npy_intp *)s->dims, s->type, data);
  if (a && PyArray_SetBaseObject((PyArrayObject *)a, Py_NewRef(owner)) < 0) Py_CLEAR(a);
  return a;
}

// The owner of the memory of an array that nobody else can see; null if there is somebody.
static PyObject *only_owner(PyObject *array) {
  if (Py_REFCNT(array) != 1) return NULL;
  PyObject *base = PyArray_BASE((PyArrayObject *)array);
  while (base && PyArray_CheckExact(base) && Py_REFCNT(base) == 1)  // another look at it
    base = PyArray_BASE((PyArrayObject *)base);
  if (!base || !PyCapsule_CheckExact(base) || Py_REFCNT(base) != 1) return NULL;
  if (PyCapsule_GetDestructor(base) != give_back) return NULL;
  return PyCapsule_GetPointer(base, PB_MEMORY) == PyArray_DATA((PyArrayObject *)array) ? base : NULL;
}

static PyObject *window(void *data, const spec *s) {
  return PyArray_New(&PyArray_Type, s->ndim, (npy_intp *)s->dims, s->type, (npy_intp *)s->strides, data,
                     0, NPY_ARRAY_WRITEABLE, NULL);
}

// the result of a Python step as a contiguous array of the planned shape that owns its memory
static PyObject *adopt(Function *f, PyObject *value, const spec *s) {
  PyArrayObject *a = (PyArrayObject *)PyArray_FROM_OTF(value, s->type, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
  if (!a) return NULL;
  if (PyArray_SIZE(a) != s->size) {
    PyErr_Format(PyExc_RuntimeError, "%U: a NumPy kernel returned %zd elements where the graph says %zd",
                 f->name, (Py_ssize_t)PyArray_SIZE(a), (Py_ssize_t)s->size);
    Py_DECREF(a);
    return NULL;
  }
  int same = PyArray_NDIM(a) == s->ndim;
  for (int i = 0; same && i < s->ndim; i++) same = PyArray_DIM(a, i) == s->dims[i];
  if (!same) {  // the graph returns another look at all elements in order
    PyArray_Dims shape = {(npy_intp *)s->dims, s->ndim};
    PyArrayObject *looked = (PyArrayObject *)PyArray_Newshape(a, &shape, NPY_CORDER);
    Py_DECREF(a);
    if (!looked) return NULL;
    a = looked;
  }
  PyArrayObject *base = (PyArrayObject *)PyArray_BASE(a);
  if (!base || !PyArray_CheckExact(base) || Py_REFCNT(base) != 1) base = a;  // else only this array looks there
  if (PyArray_CHKFLAGS(base, NPY_ARRAY_OWNDATA)) return (PyObject *)a;
  PyObject *copy = PyArray_NewCopy(a, NPY_CORDER);
  Py_DECREF(a);
  return copy;
}

// one step that needs Python: `held` receives the arrays it made
static int call_python(Function *f, step *s, void **p, PyObject **held) {
  PyObject *args = PyTuple_New(s->nargs);
  if (!args) return -1;
  for (int i = 0; i < s->nargs; i++) {
    PyObject *a = window((char *)p[s->args[i].buf] + s->args[i].offset, &s->args[i].s);
    if (!a) {
      Py_DECREF(args);
      return -1;
    }
    PyTuple_SET_ITEM(args, i, a);
  }
  PyObject *got = PyObject_CallObject(s->fn, args);
  int status = -1;
  if (got) {
    status = 0;
    int many = PyTuple_Check(got) || PyList_Check(got);
    if (many && PySequence_Size(got) != s->nresults) {
      PyErr_Format(PyExc_RuntimeError, "%U: a NumPy kernel returned the wrong number of results", f->name);
      status = -1;
    }
    for (int i = 0; i < s->nresults && status == 0; i++) {
      int64_t b = s->results[i];
      if (b < 0) continue;
      PyObject *one = many ? PySequence_GetItem(got, i) : (Py_INCREF(got), got);
      PyObject *a = one ? adopt(f, one, &f->buf[b].s) : NULL;
      Py_XDECREF(one);
      if (!a) status = -1;
      else {
        Py_XDECREF(held[b]);
        held[b] = a;
        p[b] = PyArray_DATA((PyArrayObject *)a);
      }
    }
    Py_DECREF(got);
  }
  Py_DECREF(args);
  return status;
}

static PyObject *collect(Function *f, PyObject *const *args, PyObject **held) {
  PyObject *result = PyTuple_New(f->nout);
  if (!result) return NULL;
  for (int i = 0; i < f->nout; i++) {
    output *o = &f->out[i];
    PyObject *base = o->kind == OUT_VALUE ? o->value : o->kind == OUT_INPUT ? args[o->at] : held[o->at];
    PyObject *a = base;
    if (o->kind == OUT_VALUE || o->whole) Py_INCREF(a);
    else {
      a = window((char *)PyArray_DATA((PyArrayObject *)base) + o->offset, &o->s);
      if (a) {
        Py_INCREF(base);
        if (PyArray_SetBaseObject((PyArrayObject *)a, base) < 0) Py_CLEAR(a);
      }
    }
    if (!a) {
      Py_DECREF(result);
      return NULL;
    }
    PyTuple_SET_ITEM(result, i, a);
  }
  return result;
}

// after a step: let go of what nothing reads any more
static void let_go(Function *f, step *s, PyObject **held, PyObject **given, PyObject **owner) {
  for (int i = 0; i < s->nfrees; i++) {
    if (s->frees[i] >= f->nbuf) {
      Py_CLEAR(owner[s->frees[i] - f->nbuf]);
      continue;
    }
    buffer *b = &f->buf[s->frees[i]];
    if (b->kind == BUF_EXTERN) Py_CLEAR(held[s->frees[i]]);
    else if (b->kind == BUF_INPUT) Py_CLEAR(given[b->at]);
  }
}

// before a step: outputs that it is the first to need
static int make_outputs(Function *f, step *s, void **p, PyObject **held) {
  for (int i = 0; i < s->nmakes; i++) {
    int64_t n = s->makes[i];
    buffer *b = &f->buf[n];
    if (b->kind == BUF_HOSTED) {
      p[n] = (char *)p[b->at] + b->bytes;
      continue;
    }
    held[n] = fresh(&b->s, b->bytes);
    if (!held[n]) return -1;
    p[n] = PyArray_DATA((PyArrayObject *)held[n]);
  }
  return 0;
}

static int run_steps(Function *f, void **p, PyObject **held, PyObject **given, PyObject **owner) {
  pb_status *status = p[0];
  for (int i = 0; i < f->nsteps; i++) {
    step *s = &f->steps[i];
    if (s->nmakes && make_outputs(f, s, p, held)) return -1;
    if (!s->stage) {
      if (call_python(f, s, p, held)) return -1;
      let_go(f, s, held, given, owner);
      continue;
    }
    if (s->release) {
      Py_BEGIN_ALLOW_THREADS
      s->stage(p);
      Py_END_ALLOW_THREADS
    } else s->stage(p);
    if (status->code < 0) return -1;  // its error is set
    if (status->code) {
      PyObject *check = PyTuple_GetItem(f->checks, (Py_ssize_t)status->code - 1);  // (class, text)
      if (check)
        PyErr_Format(PyTuple_GET_ITEM(check, 0), "%U (got %lld)", PyTuple_GET_ITEM(check, 1),
                     (long long)status->value);
      return -1;
    }
    let_go(f, s, held, given, owner);
  }
  return 0;
}

// Run on arrays that `given` holds; what is freed on the way becomes null there.
static PyObject *run_function(Function *f, PyObject **given) {
  size_t count = (size_t)f->nbuf + 1;
  int many = count > 8192;  // too many for the stack of a thread
  void *near_by[many ? 1 : 2 * count], **table = many ? malloc(2 * count * sizeof *table) : near_by;
  PyObject **held = (PyObject **)table + count, *owner[f->nin + 1], *result = NULL;
  pb_status status = {0, 0};
  char *work = NULL, *arena[f->nin + 1];
  int64_t got = 0;
  memset(owner, 0, sizeof owner);
  if (!table) {
    for (int i = 0; i < f->nin; i++) Py_CLEAR(given[i]);
    return PyErr_NoMemory();
  }
  memset(held, 0, count * sizeof *held);
  if (f->written && settle_written(f, given)) goto done;
  for (int i = 0; f->room && i < f->nin; i++) {
    if (!f->room[i]) continue;
    PyObject *own = only_owner(given[i]);
    if (own) {
      owner[i] = Py_NewRef(own);
      arena[i] = PyArray_DATA((PyArrayObject *)given[i]);
      continue;
    }
    arena[i] = pb_alloc((size_t)f->room[i]);  // somebody else has it: as much memory beside it
    owner[i] = arena[i] ? PyCapsule_New(arena[i], PB_MEMORY, give_back) : PyErr_NoMemory();
    if (!owner[i]) {
      pb_free(arena[i]);
      goto done;
    }
  }
  if (f->workspace) {
    work = take_workspace(f->workspace, &got);
    if (!work) {
      PyErr_NoMemory();
      goto done;
    }
  }
  table[0] = &status;
  for (int i = 1; i < f->nbuf; i++) {
    buffer *b = &f->buf[i];
    switch (b->kind) {
      case BUF_INPUT: table[i] = PyArray_DATA((PyArrayObject *)given[b->at]); break;
      case BUF_WORK: table[i] = work + b->at; break;
      case BUF_CONST: table[i] = PyArray_DATA((PyArrayObject *)b->value); break;
      case BUF_EXTERN: table[i] = NULL; break;
      case BUF_PLACED: table[i] = arena[b->at] + b->bytes; break;
      case BUF_HOSTED: break;
      default:
        if (f->late && b->kind == BUF_OUTPUT) break;
        held[i] = b->kind == BUF_TAKEN ? array_of(&b->s, owner[b->at], arena[b->at]) : fresh(&b->s, b->bytes);
        if (!held[i]) goto done;
        table[i] = PyArray_DATA((PyArrayObject *)held[i]);
    }
  }
  for (int i = 1; f->hosts && !f->late && i < f->nbuf; i++)
    if (f->buf[i].kind == BUF_HOSTED) table[i] = (char *)table[f->buf[i].at] + f->buf[i].bytes;
  if (run_steps(f, table, held, given, owner) == 0) result = collect(f, given, held);
done:
  for (int i = 0; i < f->nin; i++) Py_CLEAR(given[i]);
  for (int i = 0; i < f->nin; i++) Py_XDECREF(owner[i]);
  for (int i = 0; i < f->nbuf; i++) Py_XDECREF(held[i]);
  if (work && f->tight && got == f->workspace)
    pb_release(work);
  else if (work)
    keep_workspace(work, got);
  if (many) free(table);
  return result;
}

// an argument, or a copy of it in the planned layout
static PyObject *conformed(Function *f, int i, PyObject *value) {
  if (fits(value, &f->in[i])) return Py_NewRef(value);
  PyObject *made = PyObject_CallFunction(f->conform, "iO", i, value);
  if (made && !fits(made, &f->in[i])) {
    PyErr_Format(PyExc_TypeError, "%U: argument %d does not have the planned layout", f->name, i);
    Py_CLEAR(made);
  }
  return made;
}

static PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  Function *f = (Function *)self;
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (n != f->nin || (kwnames && PyTuple_GET_SIZE(kwnames)))
    return PyErr_Format(PyExc_TypeError, "%U takes %d arrays, got %zd", f->name, f->nin, n);
  PyObject *given[f->nin + 1];
  for (int i = 0; i < f->nin; i++) {
    given[i] = conformed(f, i, args[i]);
    if (!given[i]) {
      while (i--) Py_DECREF(given[i]);
      return NULL;
    }
  }
  return run_function(f, given);
}

// The same for a list, which is emptied: arrays that nobody else has may be freed or overwritten.
static PyObject *function_consume(PyObject *self, PyObject *list) {
  Function *f = (Function *)self;
  if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) != f->nin)
    return PyErr_Format(PyExc_TypeError, "%U takes a list of %d arrays", f->name, f->nin);
  PyObject *given[f->nin + 1];
  for (int i = 0; i < f->nin; i++) {
    given[i] = conformed(f, i, PyList_GET_ITEM(list, i));
    if (!given[i]) {
      while (i--) Py_DECREF(given[i]);
      return NULL;
    }
  }
  if (PyList_SetSlice(list, 0, f->nin, NULL)) {
    for (int i = 0; i < f->nin; i++) Py_DECREF(given[i]);
    return NULL;
  }
  return run_function(f, given);
}

static void function_free(PyObject *self) {
  Function *f = (Function *)self;
  PyObject_GC_UnTrack(self);
  for (int i = 0; f->buf && i < f->nbuf; i++) Py_XDECREF(f->buf[i].value);
  for (int i = 0; f->out && i < f->nout; i++) Py_XDECREF(f->out[i].value);
  for (int i = 0; f->steps && i < f->nsteps; i++) {
    Py_XDECREF(f->steps[i].fn);
    free(f->steps[i].args);
    free(f->steps[i].results);
    free(f->steps[i].frees);
    free(f->steps[i].makes);
  }
  free(f->in);
  free(f->buf);
  free(f->out);
  free(f->steps);
  free(f->written);
  free(f->last);
  free(f->room);
  Py_XDECREF(f->name);
  Py_XDECREF(f->conform);
  Py_XDECREF(f->checks);
  PyObject_GC_Del(self);
}

static int function_traverse(PyObject *self, visitproc visit, void *arg) {
  Function *f = (Function *)self;
  Py_VISIT(f->conform);
  for (int i = 0; f->steps && i < f->nsteps; i++) Py_VISIT(f->steps[i].fn);
  return 0;
}

static PyMethodDef function_methods[] = {
    {"consume", function_consume, METH_O, "Call with a list of arrays, which is emptied."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject FunctionType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pullback.compile.Function",
    .tp_basicsize = sizeof(Function),
    .tp_dealloc = function_free,
    .tp_traverse = function_traverse,
    .tp_vectorcall_offset = offsetof(Function, call),
    .tp_call = PyVectorcall_Call,
    .tp_methods = function_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A compiled graph: arrays in, a tuple of arrays out.",
};

static int read_step(Function *f, PyObject *t, step *s) {
  PyObject *what = PyTuple_GET_ITEM(t, 0);
  if (PyUnicode_Check(what)) {  // (symbol, release)
    s->stage = (void (*)(void **))dlsym(f->handle, PyUnicode_AsUTF8(what));
    s->release = PyObject_IsTrue(PyTuple_GET_ITEM(t, 1));
    if (s->stage) return 0;
    PyErr_Format(PyExc_OSError, "symbol %U is missing", what);
    return -1;
  }
  PyObject *args = PyTuple_GET_ITEM(t, 1), *results = PyTuple_GET_ITEM(t, 2);  // (fn, args, results)
  s->fn = what;
  Py_INCREF(what);
  s->nargs = (int)PyTuple_GET_SIZE(args);
  s->nresults = (int)PyTuple_GET_SIZE(results);
  s->args = calloc((size_t)s->nargs + 1, sizeof *s->args);
  s->results = calloc((size_t)s->nresults + 1, sizeof *s->results);
  for (int i = 0; i < s->nargs; i++) {  // (buffer, byte offset, spec)
    PyObject *a = PyTuple_GET_ITEM(args, i);
    s->args[i].buf = PyLong_AsLongLong(PyTuple_GET_ITEM(a, 0));
    s->args[i].offset = PyLong_AsLongLong(PyTuple_GET_ITEM(a, 1));
    if (read_spec(PyTuple_GET_ITEM(a, 2), &s->args[i].s)) return -1;
  }
  for (int i = 0; i < s->nresults; i++) s->results[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(results, i));
  return PyErr_Occurred() ? -1 : 0;
}

static int read_plan(Function *f, PyObject *inputs, PyObject *buffers, PyObject *outputs, PyObject *steps) {
  f->nin = (int)PyTuple_GET_SIZE(inputs);
  f->nbuf = (int)PyTuple_GET_SIZE(buffers);
  f->nout = (int)PyTuple_GET_SIZE(outputs);
  f->nsteps = (int)PyTuple_GET_SIZE(steps);
  f->in = calloc((size_t)f->nin + 1, sizeof(spec));
  f->buf = calloc((size_t)f->nbuf + 1, sizeof(buffer));
  f->out = calloc((size_t)f->nout + 1, sizeof(output));
  f->steps = calloc((size_t)f->nsteps + 1, sizeof(step));
  for (int i = 0; i < f->nin; i++)
    if (read_spec(PyTuple_GET_ITEM(inputs, i), &f->in[i])) return -1;
  for (int i = 0; i < f->nbuf; i++) {  // (kind, at, bytes, spec, value)
    PyObject *t = PyTuple_GET_ITEM(buffers, i), *value = PyTuple_GET_ITEM(t, 4);
    f->buf[i].kind = (int)PyLong_AsLong(PyTuple_GET_ITEM(t, 0));
    f->buf[i].at = PyLong_AsLongLong(PyTuple_GET_ITEM(t, 1));
    f->hosts |= f->buf[i].kind == BUF_HOSTED;
    f->buf[i].bytes = PyLong_AsLongLong(PyTuple_GET_ITEM(t, 2));
    if (read_spec(PyTuple_GET_ITEM(t, 3), &f->buf[i].s)) return -1;
    if (value != Py_None) f->buf[i].value = Py_NewRef(value);
  }
  for (int i = 0; i < f->nout; i++) {  // (kind, at, byte offset, whole, spec, value)
    PyObject *t = PyTuple_GET_ITEM(outputs, i);
    f->out[i].kind = (int)PyLong_AsLong(PyTuple_GET_ITEM(t, 0));
    f->out[i].at = PyLong_AsLongLong(PyTuple_GET_ITEM(t, 1));
    f->out[i].offset = PyLong_AsLongLong(PyTuple_GET_ITEM(t, 2));
    f->out[i].whole = PyObject_IsTrue(PyTuple_GET_ITEM(t, 3));
    if (read_spec(PyTuple_GET_ITEM(t, 4), &f->out[i].s)) return -1;
    f->out[i].value = Py_NewRef(PyTuple_GET_ITEM(t, 5));
  }
  for (int i = 0; i < f->nsteps; i++)
    if (read_step(f, PyTuple_GET_ITEM(steps, i), &f->steps[i])) return -1;
  return 0;
}

static int read_written(Function *f, PyObject *numbers) {
  Py_ssize_t n = PyTuple_GET_SIZE(numbers);
  if (!n) return 0;
  f->written = calloc((size_t)f->nin + 1, 1);
  f->last = calloc((size_t)f->nin + 1, sizeof *f->last);
  if (!f->written || !f->last) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    long k = PyLong_AsLong(PyTuple_GET_ITEM(numbers, i));
    if (k >= 0 && k < f->nin) f->written[k] = 1;
  }
  return PyErr_Occurred() ? -1 : 0;
}

// the numbers in a tuple, and how many there are
static int64_t *numbers_in(PyObject *tuple, int *count) {
  *count = (int)PyTuple_GET_SIZE(tuple);
  int64_t *found = calloc((size_t)*count + 1, sizeof *found);
  if (!found) {
    *count = 0;
    PyErr_NoMemory();
    return NULL;
  }
  for (int k = 0; k < *count; k++) found[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, k));
  return found;
}

// per step the outputs that are first needed in it, if they are not all made at the beginning
static int read_makes(Function *f, PyObject *makes) {
  f->late = PyTuple_GET_SIZE(makes) > 0;
  for (int i = 0; i < f->nsteps && i < PyTuple_GET_SIZE(makes); i++) {
    step *s = &f->steps[i];
    s->makes = numbers_in(PyTuple_GET_ITEM(makes, i), &s->nmakes);
  }
  return PyErr_Occurred() ? -1 : 0;
}

// per step the buffers that end with it; (input, bytes) of inputs whose memory others take
static int read_ends(Function *f, PyObject *frees, PyObject *room) {
  for (int i = 0; i < f->nsteps && i < PyTuple_GET_SIZE(frees); i++) {
    step *s = &f->steps[i];
    s->frees = numbers_in(PyTuple_GET_ITEM(frees, i), &s->nfrees);
  }
  if (PyTuple_GET_SIZE(room)) f->room = calloc((size_t)f->nin + 1, sizeof *f->room);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(room); i++) {
    PyObject *t = PyTuple_GET_ITEM(room, i);
    f->room[PyLong_AsLong(PyTuple_GET_ITEM(t, 0))] = PyLong_AsLongLong(PyTuple_GET_ITEM(t, 1));
  }
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject *make_function(PyObject *module, PyObject *args) {
  const char *path;
  PyObject *name, *inputs, *buffers, *outputs, *steps, *checks, *conform, *written, *frees, *room, *makes;
  long long workspace;
  int tight;
  if (!PyArg_ParseTuple(args, "UzO!O!O!O!LO!OO!O!O!O!p", &name, &path, &PyTuple_Type, &inputs, &PyTuple_Type, &buffers,
                        &PyTuple_Type, &outputs, &PyTuple_Type, &steps, &workspace, &PyTuple_Type, &checks,
                        &conform, &PyTuple_Type, &written, &PyTuple_Type, &frees, &PyTuple_Type, &room,
                        &PyTuple_Type, &makes, &tight))
    return NULL;
  Function *f = PyObject_GC_New(Function, &FunctionType);
  if (!f) return NULL;
  memset((char *)f + sizeof(PyObject), 0, sizeof(Function) - sizeof(PyObject));
  PyObject_GC_Track(f);
  f->call = function_call;
  f->name = Py_NewRef(name);
  f->conform = Py_NewRef(conform);
  f->checks = Py_NewRef(checks);
  f->workspace = workspace;
  f->tight = tight;
  if (path) {
    f->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // stays loaded: code may run on other threads
    void (*bind)(const pb_api *) = f->handle ? (void (*)(const pb_api *))dlsym(f->handle, "pb_bind") : NULL;
    if (!bind) {
      PyErr_Format(PyExc_OSError, "%s", dlerror());
      if (f->handle) dlclose(f->handle);  // or its name would stand for it for ever
      Py_DECREF(f);
      return NULL;
    }
    bind(&api);
  }
  if (read_plan(f, inputs, buffers, outputs, steps) || read_written(f, written) || read_ends(f, frees, room) ||
      read_makes(f, makes)) {
    Py_DECREF(f);
    return NULL;
  }
  return (PyObject *)f;
}
