// Elementwise kernels in place on many arrays at once: the steps of optimizers.
//
// update(kernel of floats, kernel of doubles, rows, numbers) -> numbers of the rows that were left out
//
// A row is a list of arrays of one shape, dtype and memory order; the second (a gradient) is only read.
// Complex arrays count as real ones of twice the size.  Chunks of all rows are shared among the threads.

typedef void (*update_kernel)(void **a, const double *numbers, int64_t begin, int64_t end);

typedef struct {
  update_kernel run;
  void **arrays;
  int64_t size, first;  // elements; number of its first chunk
} update_row;

typedef struct {
  update_row *rows;
  int64_t count;
  const double *numbers;
} update_job;

enum { UPDATE_CHUNK = 16384, UPDATE_ALONE = 65536 };

static void update_body(void **p, int64_t begin, int64_t end) {
  const update_job *job = p[0];
  int64_t low = 0, high = job->count - 1;
  while (low < high) {  // the row of the first chunk
    int64_t middle = (low + high + 1) / 2;
    if (job->rows[middle].first <= begin) low = middle;
    else high = middle - 1;
  }
  for (int64_t c = begin; c < end; c++) {
    while (low + 1 < job->count && job->rows[low + 1].first <= c) low++;
    const update_row *r = &job->rows[low];
    int64_t from = (c - r->first) * UPDATE_CHUNK, to = from + UPDATE_CHUNK;
    if (from < r->size) r->run(r->arrays, job->numbers, from, to < r->size ? to : r->size);
  }
}

// 0, or whether the arrays of a row can be walked together: 'f' or 'd'
static char update_type(PyObject *row, int64_t *size, void **out) {
  Py_ssize_t n = PyList_GET_SIZE(row);
  int type = -1, c = 1, f = 1;
  npy_intp elements = 0;
  for (Py_ssize_t k = 0; k < n; k++) {
    PyArrayObject *a = (PyArrayObject *)PyList_GET_ITEM(row, k);
    if (!PyArray_CheckExact((PyObject *)a) || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) return 0;
    if (k != 1 && !PyArray_ISWRITEABLE(a)) return 0;
    if (k == 0) {
      type = PyArray_TYPE(a);
      elements = PyArray_SIZE(a);
    } else if (PyArray_TYPE(a) != type || PyArray_SIZE(a) != elements) return 0;
    c = c && PyArray_IS_C_CONTIGUOUS(a);
    f = f && PyArray_IS_F_CONTIGUOUS(a);
    out[k] = PyArray_DATA(a);
  }
  if (!c && !f) return 0;
  int pairs = type == NPY_CFLOAT || type == NPY_CDOUBLE;
  *size = (int64_t)elements << pairs;
  if (type == NPY_FLOAT || type == NPY_CFLOAT) return 'f';
  return type == NPY_DOUBLE || type == NPY_CDOUBLE ? 'd' : 0;
}

static PyObject *update(PyObject *m, PyObject *args) {
  unsigned long long kernel_f, kernel_d;
  PyObject *list, *given;
  if (!PyArg_ParseTuple(args, "KKO!O!", &kernel_f, &kernel_d, &PyList_Type, &list, &PyTuple_Type, &given))
    return NULL;
  Py_ssize_t n = PyList_GET_SIZE(list), numbers = PyTuple_GET_SIZE(given), arrays = 0, used = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!PyList_Check(PyList_GET_ITEM(list, i)))
      return PyErr_Format(PyExc_TypeError, "update() wants lists of arrays");
    arrays += PyList_GET_SIZE(PyList_GET_ITEM(list, i));
  }
  update_row *rows = malloc(((size_t)n + 1) * sizeof *rows);
  void **places = malloc(((size_t)arrays + 1) * sizeof *places);
  double *values = malloc(((size_t)numbers + 1) * sizeof *values);
  PyObject *left = PyList_New(0);
  if (!rows || !places || !values || !left) {
    PyErr_NoMemory();
    Py_CLEAR(left);
    goto done;
  }
  for (Py_ssize_t i = 0; i < numbers; i++) values[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(given, i));
  if (PyErr_Occurred()) {
    Py_CLEAR(left);
    goto done;
  }
  update_job job = {rows, 0, values};
  int64_t chunks = 0, total = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *row = PyList_GET_ITEM(list, i);
    update_row *r = &rows[job.count];
    char type = update_type(row, &r->size, places + used);
    if (!type) {
      PyObject *number = PyLong_FromSsize_t(i);
      int bad = !number || PyList_Append(left, number);
      Py_XDECREF(number);
      if (bad) {
        Py_CLEAR(left);
        goto done;
      }
      continue;
    }
    r->run = (update_kernel)(uintptr_t)(type == 'f' ? kernel_f : kernel_d);
    r->arrays = places + used;
    r->first = chunks;
    used += PyList_GET_SIZE(row);
    chunks += (r->size + UPDATE_CHUNK - 1) / UPDATE_CHUNK;
    total += r->size;
    if (r->size) job.count++;
  }
  void *p[1] = {&job};
  if (job.count && total < UPDATE_ALONE) update_body(p, 0, chunks);
  else if (job.count) {
    Py_BEGIN_ALLOW_THREADS
    pb_parallel(update_body, p, chunks, 1);
    Py_END_ALLOW_THREADS
  }
done:
  free(rows);
  free(places);
  free(values);
  return left;
}
