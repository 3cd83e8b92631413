// Kernels of eager execution as a Python extension: what takes NumPy several passes over memory.
// A kernel takes the arguments of an operator (`ops/`) after promotion.  It does what is usual:
// contiguous arrays of float or double; for all else it gives way, and the kernel of the table runs,
// which also refuses what has to be refused.  `compile/eager_kernels.py` builds and loads this;
// the loops are in eager.h.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include "pb.h"

static const pb_support *support;  // the pool of the runtime, once it is there

static void pb_parallel(pb_body body, void **p, int64_t chunks, int64_t grain) {
  if (support) support->parallel(body, p, chunks, grain);
  else body(p, 0, chunks);
}
#include "rows.c"
#include "windows.c"

#if defined(__AVX512F__)
#define FLOATS 16
#define DOUBLES 8
#elif defined(__AVX__)
#define FLOATS 8
#define DOUBLES 4
#else
#define FLOATS 4
#define DOUBLES 4
#endif

// The larger of two numbers, the second where one is a NaN: what processors have an instruction for.
#if defined(__AVX512F__) && !defined(__clang__)
#define HIGHER_F(x, y) __builtin_ia32_maxps512_mask(x, y, x, -1, 4)
#define HIGHER_D(x, y) __builtin_ia32_maxpd512_mask(x, y, x, -1, 4)
#elif defined(__AVX__) && !defined(__clang__)
#define HIGHER_F(x, y) __builtin_ia32_maxps256(x, y)
#define HIGHER_D(x, y) __builtin_ia32_maxpd256(x, y)
#else
#define HIGHER_F(x, y) FN(sel_f)((x) > (y), x, y)
#define HIGHER_D(x, y) FN(sel_dl)((x) > (y), x, y)
#endif

enum { COLUMNS = 64, CHUNK = 2048, ALONE = 1 << 15 };  // elements at a time, and those that are not worth a thread

typedef struct {
  const void *from[5];
  void *to[5];
  int64_t rows, n, inner, parts;
  double eps, momentum;
  int flag;
} job;

#define PB_L FLOATS
#include "vec.h"
#include "vmath.h"
#define REAL float
#define WIDE FLOATS
#define VEC VF
#define OF(name) name##_f
#define LOAD FN(load_f)
#define STORE FN(store_f)
#define SPLAT FN(splat_f)
#define HIGHER HIGHER_F
#define SUM FN(hsum_f)
#define HIGH FN(hmax_f)
#define EXP FN(exp_f)
#define LOG FN(log_f)
#define TANH FN(tanh_f)
#define ERF FN(erf_f)
#define LOG1 logf
#define SQRT1 sqrtf
#include "eager.h"
#undef REAL
#undef WIDE
#undef VEC
#undef OF
#undef LOAD
#undef STORE
#undef SPLAT
#undef HIGHER
#undef SUM
#undef HIGH
#undef EXP
#undef LOG
#undef TANH
#undef ERF
#undef LOG1
#undef SQRT1
#undef BLOCK
#undef OVER
#undef WHOLE_LOAD
#undef WHOLE_STORE
#undef PART_LOAD
#undef PART_STORE
#undef SUMMED
#undef POINTWISE
#undef INV_SQRT2
#undef SLOPE
#undef CUBIC
#undef HALF

#if DOUBLES != FLOATS
#undef PB_L
#define PB_L DOUBLES
#include "vec.h"
#include "vmath.h"
#endif
#define REAL double
#define WIDE DOUBLES
#define VEC VD
#define OF(name) name##_d
#define LOAD FN(load_d)
#define STORE FN(store_d)
#define SPLAT FN(splat_d)
#define HIGHER HIGHER_D
#define SUM FN(hsum_d)
#define HIGH FN(hmax_d)
#define EXP FN(exp_d)
#define LOG FN(log_d)
#define TANH FN(tanh_d)
#define ERF FN(erf_d)
#define LOG1 log
#define SQRT1 sqrt
#include "eager.h"

// ---------------------------------------------------------------------------------------------------
// What kernels ask of arguments

#define ARRAY(o) ((PyArrayObject *)(o))
#define DATA(o) PyArray_DATA(ARRAY(o))
#define DIMS(o) PyArray_DIMS(ARRAY(o))
#define NDIM(o) PyArray_NDIM(ARRAY(o))
#define SIZE(o) PyArray_SIZE(ARRAY(o))

// Is it an array in rows of this type?
static inline int in_rows(PyObject *o, int type) {
  return PyArray_CheckExact(o) && PyArray_TYPE(ARRAY(o)) == type && PyArray_IS_C_CONTIGUOUS(ARRAY(o)) &&
         PyArray_ISALIGNED(ARRAY(o)) && PyArray_ISNOTSWAPPED(ARRAY(o));
}
// The type of an array in rows of float or double, else -1.
static inline int real(PyObject *o) {
  int type = PyArray_CheckExact(o) ? PyArray_TYPE(ARRAY(o)) : -1;
  return (type == NPY_FLOAT || type == NPY_DOUBLE) && in_rows(o, type) ? type : -1;
}
static inline int same_shape(PyObject *a, PyObject *b) {
  return NDIM(a) == NDIM(b) && (NDIM(a) == 0 || !memcmp(DIMS(a), DIMS(b), sizeof(npy_intp) * (size_t)NDIM(a)));
}
// An argument that may be missing: -1 if it does not fit, else its data.
static inline int optional(PyObject *o, int type, int64_t size, const void **data) {
  *data = NULL;
  if (o == Py_None) return 0;
  if (!in_rows(o, type) || SIZE(o) != size) return -1;
  *data = DATA(o);
  return 0;
}
static inline int whole(PyObject *o, int64_t *value) {
  if (!PyLong_CheckExact(o)) return -1;
  *value = PyLong_AsLongLong(o);
  if (*value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return -1;
  }
  return 0;
}
// How many a list or a tuple has, else -1; and one of them.
static inline Py_ssize_t count_of(PyObject *o) {
  return PyList_CheckExact(o) ? PyList_GET_SIZE(o) : PyTuple_CheckExact(o) ? PyTuple_GET_SIZE(o) : -1;
}
static inline PyObject *item(PyObject *o, Py_ssize_t i) {
  return PyList_CheckExact(o) ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
}
static inline int number(PyObject *o, double *value) {
  if (!PyFloat_CheckExact(o)) return -1;
  *value = PyFloat_AS_DOUBLE(o);
  return 0;
}
enum { LARGE = 1 << 20 };  // bytes from which memory is that of the runtime, which keeps it for reuse

static void give_back(PyObject *capsule) { support->free(PyCapsule_GetPointer(capsule, PB_MEMORY)); }
// A new array; touching fresh pages would cost more than all that a kernel does.
static PyObject *fresh(int nd, npy_intp *dims, int type) {
  int64_t bytes = type == NPY_FLOAT ? 4 : 8;
  for (int i = 0; i < nd; i++) bytes *= dims[i];
  if (bytes < LARGE || !support) return PyArray_EMPTY(nd, dims, type, 0);
  void *data = support->alloc((size_t)bytes);
  if (!data) return PyErr_NoMemory();
  PyObject *array = PyArray_SimpleNewFromData(nd, dims, type, data);
  PyObject *owner = array ? PyCapsule_New(data, PB_MEMORY, give_back) : NULL;
  if (!owner) {
    Py_XDECREF(array);
    support->free(data);
    return NULL;
  }
  if (PyArray_SetBaseObject(ARRAY(array), owner) < 0) Py_CLEAR(array);
  return array;
}
static PyObject *zeros(int nd, npy_intp *dims, int type) {
  PyObject *array = fresh(nd, dims, type);
  if (array) memset(PyArray_DATA(ARRAY(array)), 0, (size_t)PyArray_NBYTES(ARRAY(array)));
  return array;
}
static inline PyObject *like(PyObject *o) { return fresh(NDIM(o), DIMS(o), PyArray_TYPE(ARRAY(o))); }

// Run on chunks: threads share them where there is enough work, and others may run Python meanwhile.
static void shared(pb_body body, job *j, int64_t chunks, int64_t grain, int64_t work) {
  if (work < ALONE) {
    body((void **)j, 0, chunks);
    return;
  }
  Py_BEGIN_ALLOW_THREADS
  pb_parallel(body, (void **)j, chunks, grain < 1 ? 1 : grain);
  Py_END_ALLOW_THREADS
}
#define TYPED(name) (type == NPY_FLOAT ? name##_f : name##_d)

// ---------------------------------------------------------------------------------------------------
// Kernels: NULL without an error if a call does not fit

typedef PyObject *(*kernel)(PyObject *const *a, Py_ssize_t n);

// (outer, n, inner) around a dim
static int around(PyObject *x, PyObject *dim, job *j) {
  int64_t d;
  int nd = NDIM(x);
  if (whole(dim, &d) || d < -nd || d >= nd || SIZE(x) == 0) return -1;
  if (d < 0) d += nd;
  j->rows = j->inner = 1;
  j->n = DIMS(x)[d];
  for (int i = 0; i < d; i++) j->rows *= DIMS(x)[i];
  for (int i = (int)d + 1; i < nd; i++) j->inner *= DIMS(x)[i];
  return 0;
}
static PyObject *softmax_of(PyObject *const *a, Py_ssize_t n, int logarithm) {
  job j = {{0}};
  int type = n == 3 ? real(a[0]) : -1;
  if (type < 0 || a[2] != Py_False || around(a[0], a[1], &j)) return NULL;
  PyObject *out = like(a[0]);
  if (!out) return NULL;
  j.from[0] = DATA(a[0]);
  j.to[0] = DATA(out);
  j.flag = logarithm;
  shared(TYPED(softmax_part), &j, j.rows, CHUNK / (j.n * j.inner), SIZE(out));
  return out;
}
static PyObject *softmax(PyObject *const *a, Py_ssize_t n) { return softmax_of(a, n, 0); }
static PyObject *log_softmax(PyObject *const *a, Py_ssize_t n) { return softmax_of(a, n, 1); }

// The number of a dtype argument: of an entry's DType `np` is NumPy's.
static int same_type(PyObject *dtype, PyObject *array) {
  static PyObject *np;
  if (!np && !(np = PyUnicode_InternFromString("np"))) return 0;
  PyObject *own = PyObject_GetAttr(dtype, np);
  if (!own) {
    PyErr_Clear();
    return 0;
  }
  Py_DECREF(own);
  return own == (PyObject *)PyArray_DESCR(ARRAY(array));
}
static PyObject *softmax_backward_of(PyObject *const *a, Py_ssize_t n, int logarithm) {
  job j = {{0}};
  int type = n == 4 ? real(a[0]) : -1;
  if (type < 0 || !in_rows(a[1], type) || !same_shape(a[0], a[1]) || around(a[1], a[2], &j)) return NULL;
  if (j.inner != 1 || !same_type(a[3], a[1])) return NULL;
  PyObject *out = like(a[1]);
  if (!out) return NULL;
  j.from[0] = DATA(a[0]);
  j.from[1] = DATA(a[1]);
  j.to[0] = DATA(out);
  j.flag = logarithm;
  shared(TYPED(softmax_backward_part), &j, j.rows, CHUNK / j.n, SIZE(out));
  return out;
}
static PyObject *softmax_backward(PyObject *const *a, Py_ssize_t n) { return softmax_backward_of(a, n, 0); }
static PyObject *log_softmax_backward(PyObject *const *a, Py_ssize_t n) { return softmax_backward_of(a, n, 1); }

// Rows of the last dims, which a list of sizes says; each parameter has these sizes.
static int rows_of(PyObject *x, PyObject *sizes, job *j, PyObject *const *params, int count, int type,
                   const void **data) {
  Py_ssize_t nd = NDIM(x), k = count_of(sizes);
  if (k < 1 || k > nd || SIZE(x) == 0) return -1;
  j->n = j->rows = 1;
  for (Py_ssize_t i = 0; i < k; i++) {
    int64_t size;
    if (whole(item(sizes, i), &size) || DIMS(x)[nd - k + i] != size) return -1;
    j->n *= size;
  }
  j->rows = SIZE(x) / j->n;
  for (int p = 0; p < count; p++) {
    if (optional(params[p], type, j->n, &data[p])) return -1;
    if (params[p] != Py_None &&
        (NDIM(params[p]) != k || memcmp(DIMS(params[p]), DIMS(x) + nd - k, sizeof(npy_intp) * (size_t)k)))
      return -1;
  }
  return 0;
}
static PyObject *layer_norm(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 5 ? real(a[0]) : -1;
  if (type < 0 || number(a[4], &j.eps) || rows_of(a[0], a[1], &j, a + 2, 2, type, j.from + 1)) return NULL;
  npy_intp stats[NPY_MAXDIMS];
  int nd = NDIM(a[0]), k = (int)count_of(a[1]);
  for (int i = 0; i < nd; i++) stats[i] = i < nd - k ? DIMS(a[0])[i] : 1;
  PyObject *out = like(a[0]), *mean = fresh(nd, stats, type), *rstd = fresh(nd, stats, type), *all = NULL;
  if (out && mean && rstd && (all = PyTuple_Pack(3, out, mean, rstd))) {
    j.from[0] = DATA(a[0]);
    j.to[0] = DATA(out);
    j.to[1] = DATA(mean);
    j.to[2] = DATA(rstd);
    shared(TYPED(layer_norm_part), &j, j.rows, CHUNK / j.n, SIZE(out));
  }
  Py_XDECREF(out);
  Py_XDECREF(mean);
  Py_XDECREF(rstd);
  return all;
}
// Which of three gradients a mask asks for; -1 if it is not three bools.
static int wanted(PyObject *mask, int *flags) {
  if (count_of(mask) != 3) return -1;
  for (int i = 0; i < 3; i++) {
    PyObject *o = item(mask, i);
    if (!PyBool_Check(o)) return -1;
    flags[i] = o == Py_True;
  }
  return 0;
}
static PyObject *three(PyObject **made) {
  PyObject *all = PyErr_Occurred() ? NULL : PyTuple_New(3);
  for (int i = 0; i < 3; i++) {
    if (all) PyTuple_SET_ITEM(all, i, made[i] ? made[i] : Py_NewRef(Py_None));
    else Py_XDECREF(made[i]);
  }
  return all;
}
// Sums of rows, of which there are some
#define ADD_ROWS(T)                                                                                 \
  for (int64_t i = 0; i < n; i++) {                                                                 \
    double total = 0;                                                                               \
    for (int64_t p = 0; p < parts; p++) total += ((const T *)from)[p * n + i];                       \
    ((T *)to)[i] = (T)total;                                                                        \
  }
static void add_rows(void *to, const void *from, int64_t parts, int64_t n, int type) {
  if (type == NPY_FLOAT) ADD_ROWS(float)
  else ADD_ROWS(double)
}
static PyObject *layer_norm_backward(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 8 ? real(a[0]) : -1, flags[3];
  const void *params[2];
  if (type < 0 || !in_rows(a[1], type) || !same_shape(a[0], a[1]) || wanted(a[7], flags)) return NULL;
  if (rows_of(a[1], a[2], &j, a + 5, 2, type, params)) return NULL;
  for (int i = 3; i < 5; i++)
    if (!in_rows(a[i], type) || SIZE(a[i]) != j.rows) return NULL;
  int nd = NDIM(a[1]), k = (int)count_of(a[2]);
  npy_intp *tail = DIMS(a[1]) + nd - k;
  PyObject *made[3] = {0};
  int given[3] = {flags[0], flags[1] && params[0], flags[2]};
  j.parts = j.rows / 64 < 1 ? 1 : j.rows / 64 > 16 ? 16 : j.rows / 64;
  if (given[0]) made[0] = like(a[1]);
  for (int i = 1; i < 3; i++)
    if (given[i]) made[i] = fresh(k, tail, type);
  size_t bytes = (size_t)(j.parts * j.n) * (type == NPY_FLOAT ? 4 : 8);
  char *space = j.parts > 1 && (given[1] || given[2]) ? PyMem_Malloc(2 * bytes) : NULL;
  if (j.parts > 1 && (given[1] || given[2]) && !space) PyErr_NoMemory();
  if (!PyErr_Occurred()) {
    const void *from[5] = {DATA(a[0]), DATA(a[1]), params[0], DATA(a[3]), DATA(a[4])};
    memcpy(j.from, from, sizeof from);
    for (int i = 0; i < 3; i++)
      j.to[i] = !made[i] ? NULL : i && space ? space + (i - 1) * bytes : DATA(made[i]);
    shared(TYPED(layer_norm_backward_part), &j, j.parts, 1, j.rows * j.n);
    for (int i = 1; i < 3; i++)
      if (made[i] && space) add_rows(DATA(made[i]), j.to[i], j.parts, j.n, type);
  }
  PyMem_Free(space);
  return three(made);
}

// Functions of each element of one or two arrays
static PyObject *each(PyObject *const *a, int count, pb_body f, pb_body d) {
  job j = {{0}};
  int type = real(a[0]);
  if (type < 0 || (count == 2 && (!in_rows(a[1], type) || !same_shape(a[0], a[1])))) return NULL;
  PyObject *out = like(a[0]);
  if (!out) return NULL;
  j.n = SIZE(out);
  j.from[0] = DATA(a[0]);
  j.from[1] = count == 2 ? DATA(a[1]) : NULL;
  j.to[0] = DATA(out);
  if (j.n) shared(type == NPY_FLOAT ? f : d, &j, (j.n + CHUNK - 1) / CHUNK, 1, j.n);
  return out;
}
// 0: exact, 1: by tanh, -1: neither
static int approximate(PyObject *o) {
  if (!PyUnicode_CheckExact(o)) return -1;
  if (PyUnicode_CompareWithASCIIString(o, "none") == 0) return 0;
  return PyUnicode_CompareWithASCIIString(o, "tanh") == 0 ? 1 : -1;
}
static PyObject *gelu(PyObject *const *a, Py_ssize_t n) {
  int kind = n == 2 ? approximate(a[1]) : -1;
  if (kind < 0) return NULL;
  return kind ? each(a, 1, gelu_tanh_part_f, gelu_tanh_part_d) : each(a, 1, gelu_part_f, gelu_part_d);
}
static PyObject *gelu_backward(PyObject *const *a, Py_ssize_t n) {
  int kind = n == 3 ? approximate(a[2]) : -1;
  if (kind < 0) return NULL;
  return kind ? each(a, 2, gelu_tanh_backward_part_f, gelu_tanh_backward_part_d)
              : each(a, 2, gelu_backward_part_f, gelu_backward_part_d);
}
static PyObject *silu(PyObject *const *a, Py_ssize_t n) {
  return n == 1 ? each(a, 1, silu_part_f, silu_part_d) : NULL;
}
static PyObject *silu_backward(PyObject *const *a, Py_ssize_t n) {
  return n == 2 ? each(a, 2, silu_backward_part_f, silu_backward_part_d) : NULL;
}

// Negative log likelihood of rows: reduction 0 none, 1 mean, 2 sum
static int likelihood(PyObject *x, PyObject *target, PyObject *weight, int type, job *j) {
  if (NDIM(x) != 2 || !in_rows(target, NPY_INT64) || NDIM(target) != 1 || DIMS(target)[0] != DIMS(x)[0]) return -1;
  if (SIZE(x) == 0 || optional(weight, type, DIMS(x)[1], &j->from[2])) return -1;
  if (weight != Py_None && NDIM(weight) != 1) return -1;
  j->rows = DIMS(x)[0];
  j->n = DIMS(x)[1];
  j->from[1] = DATA(target);
  return 0;
}
static void set(PyObject *o, double value) {
  if (PyArray_TYPE(ARRAY(o)) == NPY_FLOAT) *(float *)DATA(o) = (float)value;
  else *(double *)DATA(o) = value;
}
static PyObject *nll(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int64_t reduction, ignored;
  int type = n == 5 ? real(a[0]) : -1;
  if (type < 0 || likelihood(a[0], a[1], a[2], type, &j) || whole(a[3], &reduction) || whole(a[4], &ignored))
    return NULL;
  if (reduction < 0 || reduction > 2) return NULL;
  npy_intp rows = j.rows;
  PyObject *out = fresh(reduction ? 0 : 1, &rows, type), *total = fresh(0, NULL, type), *all = NULL;
  if (out && total) {
    double sum, weights;
    j.from[0] = DATA(a[0]);
    j.to[0] = reduction ? NULL : DATA(out);
    if (!TYPED(nll)(&j, ignored, &sum, &weights)) {
      if (reduction) set(out, reduction == 1 ? sum / weights : sum);
      set(total, reduction ? weights : 0);
      all = PyTuple_Pack(2, out, total);
    }
  }
  Py_XDECREF(out);
  Py_XDECREF(total);
  return all;
}
static PyObject *nll_backward(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int64_t reduction, ignored;
  int type = n == 7 ? real(a[1]) : -1;
  if (type < 0 || likelihood(a[1], a[2], a[3], type, &j) || whole(a[4], &reduction) || whole(a[5], &ignored))
    return NULL;
  if (reduction < 0 || reduction > 2 || !in_rows(a[0], type) || !in_rows(a[6], type) || SIZE(a[6]) != 1) return NULL;
  if (NDIM(a[0]) != (reduction ? 0 : 1) || SIZE(a[0]) != (reduction ? 1 : j.rows)) return NULL;
  PyObject *out = zeros(2, DIMS(a[1]), type);
  if (!out) return NULL;
  j.from[0] = DATA(a[0]);
  j.from[3] = reduction == 1 ? DATA(a[6]) : NULL;
  j.to[0] = DATA(out);
  j.flag = reduction == 0;
  if (TYPED(nll_backward)(&j, ignored)) Py_CLEAR(out);
  return out;
}

// Batch normalisation; planes of few elements are left to NumPy where there are many
static int channels_of(PyObject *x, job *j) {
  if (NDIM(x) < 2 || SIZE(x) == 0) return -1;
  j->rows = DIMS(x)[0];
  j->parts = DIMS(x)[1];
  j->n = SIZE(x) / (j->rows * j->parts);
  return j->n < 8 && SIZE(x) > 1 << 14 ? -1 : 0;
}
static int statistic(PyObject *o, int type, job *j, const void **data) {
  return o == Py_None || NDIM(o) != 1 ? -1 : optional(o, type, j->parts, data);
}
// the first of `extra` results more than three: new running statistics
static PyObject *batch_norm_of(PyObject *const *a, job *j, int type, int training) {
  npy_intp kept = training ? j->parts : 0, channels = j->parts;
  int count = training ? 5 : 3;
  PyObject *all = PyTuple_New(count);
  if (!all) return NULL;
  for (int i = 0; i < count; i++) {
    PyObject *o = i == 0 ? like(a[0]) : fresh(1, i < 3 ? &kept : &channels, type);
    if (!o) {
      Py_DECREF(all);
      return NULL;
    }
    PyTuple_SET_ITEM(all, i, o);
    j->to[i] = DATA(o);
  }
  j->from[0] = DATA(a[0]);
  j->flag = training;
  shared(TYPED(batch_norm_part), j, j->parts, 1, SIZE(a[0]));
  return all;
}
static PyObject *batch_norm(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 8 ? real(a[0]) : -1;
  if (type < 0 || a[5] != Py_True || channels_of(a[0], &j)) return NULL;
  if (optional(a[1], type, j.parts, &j.from[1]) || optional(a[2], type, j.parts, &j.from[2])) return NULL;
  if (statistic(a[3], type, &j, &j.from[3]) || statistic(a[4], type, &j, &j.from[4])) return NULL;
  if (number(a[6], &j.momentum) || number(a[7], &j.eps)) return NULL;
  return batch_norm_of(a, &j, type, 1);
}
static PyObject *batch_norm_fixed(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 7 ? real(a[0]) : -1;
  if (type < 0 || channels_of(a[0], &j)) return NULL;
  if (optional(a[1], type, j.parts, &j.from[1]) || optional(a[2], type, j.parts, &j.from[2])) return NULL;
  if (statistic(a[3], type, &j, &j.from[3]) || statistic(a[4], type, &j, &j.from[4])) return NULL;
  if (number(a[6], &j.eps)) return NULL;
  return batch_norm_of(a, &j, type, 0);
}
static PyObject *batch_norm_backward(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 10 ? real(a[0]) : -1, flags[3];
  if (type < 0 || !in_rows(a[1], type) || !same_shape(a[0], a[1]) || wanted(a[9], flags)) return NULL;
  if (channels_of(a[1], &j) || !PyBool_Check(a[7]) || number(a[8], &j.eps)) return NULL;
  j.flag = a[7] == Py_True;
  if (!j.flag && !(j.eps > 0)) return NULL;  // without, a deviation may be infinite
  if (optional(a[2], type, j.parts, &j.from[2])) return NULL;
  if (statistic(a[j.flag ? 5 : 3], type, &j, &j.from[3])) return NULL;
  if (statistic(a[j.flag ? 6 : 4], type, &j, &j.from[4])) return NULL;
  npy_intp channels = j.parts;
  PyObject *made[3] = {0};
  for (int i = 0; i < 3; i++)
    if (flags[i] && (made[i] = i ? fresh(1, &channels, type) : like(a[1]))) j.to[i] = DATA(made[i]);
  if (!PyErr_Occurred()) {
    j.from[0] = DATA(a[0]);
    j.from[1] = DATA(a[1]);
    shared(TYPED(batch_norm_backward_part), &j, j.parts, 1, SIZE(a[1]));
  }
  return three(made);
}

// Two sizes of a list of one or two
static int two(PyObject *list, int64_t *sizes) {
  Py_ssize_t n = count_of(list);
  if (n < 1 || n > 2) return -1;
  for (int i = 0; i < 2; i++)
    if (whole(item(list, n == 1 ? 0 : i), &sizes[i]) || sizes[i] < 0 || sizes[i] > 1 << 20) return -1;
  return 0;
}
// Windows over the last two dims
static int windows_of(PyObject *x, PyObject *const *sizes, pb_windows *w) {
  int nd = NDIM(x);
  if (nd < 3 || nd > 4 || SIZE(x) == 0) return -1;
  PyObject *stride = sizes[1];
  if (count_of(stride) == 0) stride = sizes[0];
  if (two(sizes[0], w->kernel + 1) || two(stride, w->stride + 1) || two(sizes[2], w->padding + 1) ||
      two(sizes[3], w->dilation + 1) || !PyBool_Check(sizes[4]))
    return -1;
  for (int i = 1; i < 3; i++)
    if (w->dilation[i] > DIMS(x)[nd - 3 + i]) return -1;  // a window may lie beside the plane
  w->planes = nd == 4 ? DIMS(x)[0] * DIMS(x)[1] : DIMS(x)[0];
  w->image[0] = w->kernel[0] = w->stride[0] = w->dilation[0] = w->counts[0] = 1;
  w->padding[0] = 0;
  for (int i = 1; i < 3; i++) {
    w->image[i] = DIMS(x)[nd - 3 + i];
    int64_t k = w->kernel[i], s = w->stride[i], p = w->padding[i];
    if (k < 1 || s < 1 || w->dilation[i] < 1 || p > k / 2) return -1;
    int64_t room = w->image[i] + 2 * p - w->dilation[i] * (k - 1) - 1, hanging = sizes[4] == Py_True;
    if (room < 0) return -1;
    w->counts[i] = (room + (hanging ? s - 1 : 0)) / s + 1;
    if (hanging && (w->counts[i] - 1) * s >= w->image[i] + p) w->counts[i]--;
    if (w->counts[i] < 1) return -1;
  }
  return w->image[1] * w->image[2] >= INT32_MAX ? -1 : 0;
}
static PyObject *max_pool2d(PyObject *const *a, Py_ssize_t n) {
  pb_windows w = {0};
  int type = n == 6 ? real(a[0]) : -1;
  if (type < 0 || windows_of(a[0], a + 1, &w)) return NULL;
  npy_intp dims[4];
  int nd = NDIM(a[0]);
  for (int i = 0; i < nd; i++) dims[i] = i < nd - 2 ? DIMS(a[0])[i] : w.counts[3 - nd + i];
  PyObject *out = fresh(nd, dims, type), *where = fresh(nd, dims, NPY_INT64), *all = NULL;
  if (out && where && (all = PyTuple_Pack(2, out, where))) {
    w.x = DATA(a[0]);
    w.out = DATA(out);
    w.where = DATA(where);
    Py_BEGIN_ALLOW_THREADS
    (type == NPY_FLOAT ? pb_max_windows_f : pb_max_windows_d)(&w);
    Py_END_ALLOW_THREADS
  }
  Py_XDECREF(out);
  Py_XDECREF(where);
  return all;
}
static PyObject *max_pool2d_backward(PyObject *const *a, Py_ssize_t n) {
  pb_windows w = {0};
  pb_status status = {0};
  int type = n == 8 ? real(a[0]) : -1;
  if (type < 0 || !in_rows(a[1], type) || !in_rows(a[7], NPY_INT64) || windows_of(a[1], a + 2, &w)) return NULL;
  int nd = NDIM(a[1]);
  if (!same_shape(a[0], a[7]) || NDIM(a[0]) != nd) return NULL;
  for (int i = 0; i < nd; i++)
    if (DIMS(a[0])[i] != (i < nd - 2 ? DIMS(a[1])[i] : w.counts[3 - nd + i])) return NULL;
  PyObject *out = like(a[1]);
  if (!out) return NULL;
  w.x = DATA(a[0]);
  w.out = DATA(out);
  w.where = DATA(a[7]);
  w.status = &status;
  w.check = 1;
  Py_BEGIN_ALLOW_THREADS
  (type == NPY_FLOAT ? pb_spread_windows_f : pb_spread_windows_d)(&w);
  Py_END_ALLOW_THREADS
  if (status.code) Py_CLEAR(out);  // a place outside of the plane
  return out;
}

// A step of an LSTM, and its gradients; `cell` says (rows, width)
static int cell(PyObject *gates, PyObject *state, int type, job *j) {
  if (!in_rows(gates, type) || !in_rows(state, type) || NDIM(gates) != 2 || NDIM(state) != 2) return -1;
  j->rows = DIMS(state)[0];
  j->n = DIMS(state)[1];
  return DIMS(gates)[0] != j->rows || DIMS(gates)[1] != 4 * j->n ? -1 : 0;
}
static PyObject *lstm_cell(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 5 ? real(a[2]) : -1;
  if (type < 0 || a[3] != Py_None || a[4] != Py_None || cell(a[0], a[2], type, &j) || cell(a[1], a[2], type, &j))
    return NULL;
  PyObject *made[3] = {like(a[2]), like(a[2]), like(a[0])};
  for (int i = 0; i < 3; i++) {
    if (made[i]) j.to[i] = DATA(made[i]);
    j.from[i] = DATA(a[i]);
  }
  if (!PyErr_Occurred()) shared(TYPED(lstm_part), &j, j.rows, CHUNK / (j.n + 1), 4 * j.rows * j.n);
  return three(made);
}
static PyObject *lstm_cell_backward(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 6 ? real(a[4]) : -1;
  if (type < 0 || a[5] != Py_False || (a[0] == Py_None && a[1] == Py_None)) return NULL;
  for (int i = 0; i < 4; i++)
    if ((i > 1 || a[i] != Py_None) && cell(a[4], a[i], type, &j)) return NULL;
  PyObject *made[3] = {like(a[4]), like(a[2]), NULL};
  if (!PyErr_Occurred()) {
    for (int i = 0; i < 5; i++) j.from[i] = a[i] == Py_None ? NULL : DATA(a[i]);
    for (int i = 0; i < 2; i++) j.to[i] = DATA(made[i]);
    shared(TYPED(lstm_backward_part), &j, j.rows, CHUNK / (j.n + 1), 4 * j.rows * j.n);
  }
  return three(made);
}

static PyObject *gru_cell(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 5 ? real(a[2]) : -1;
  if (type < 0 || NDIM(a[2]) != 2 || a[3] != Py_None || a[4] != Py_None) return NULL;
  j.rows = DIMS(a[2])[0];
  j.n = DIMS(a[2])[1];
  for (int i = 0; i < 2; i++)
    if (!in_rows(a[i], type) || NDIM(a[i]) != 2 || DIMS(a[i])[0] != j.rows || DIMS(a[i])[1] != 3 * j.n) return NULL;
  npy_intp dims[2] = {j.rows, 5 * j.n};
  PyObject *out = like(a[2]), *kept = fresh(2, dims, type), *all = NULL;
  if (out && kept && (all = PyTuple_Pack(2, out, kept))) {
    for (int i = 0; i < 3; i++) j.from[i] = DATA(a[i]);
    j.to[0] = DATA(out);
    j.to[1] = DATA(kept);
    shared(TYPED(gru_part), &j, j.rows, CHUNK / (j.n + 1), 3 * j.rows * j.n);
  }
  Py_XDECREF(out);
  Py_XDECREF(kept);
  return all;
}
static PyObject *gru_cell_backward(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 3 ? real(a[0]) : -1;
  if (type < 0 || a[2] != Py_False || !in_rows(a[1], type) || NDIM(a[0]) != 2 || NDIM(a[1]) != 2) return NULL;
  j.rows = DIMS(a[0])[0];
  j.n = DIMS(a[0])[1];
  if (DIMS(a[1])[0] != j.rows || DIMS(a[1])[1] != 5 * j.n) return NULL;
  npy_intp dims[2] = {j.rows, 3 * j.n};
  PyObject *first = fresh(2, dims, type), *second = fresh(2, dims, type), *out = like(a[0]), *all = NULL;
  if (first && second && out && (all = PyTuple_Pack(5, first, second, out, Py_None, Py_None))) {
    j.from[0] = DATA(a[0]);
    j.from[1] = DATA(a[1]);
    j.to[0] = DATA(first);
    j.to[1] = DATA(second);
    j.to[2] = DATA(out);
    shared(TYPED(gru_backward_part), &j, j.rows, CHUNK / (j.n + 1), 3 * j.rows * j.n);
  }
  Py_XDECREF(first);
  Py_XDECREF(second);
  Py_XDECREF(out);
  return all;
}

// Products of matrices: small ones here, which NumPy takes longer to begin, others by its BLAS
static PyObject *numpy_matmul;  // numpy.matmul

static int steps_of(PyObject *x, int type, int64_t *steps) {
  if (!PyArray_CheckExact(x) || PyArray_TYPE(ARRAY(x)) != type || NDIM(x) != 2) return -1;
  if (!PyArray_ISALIGNED(ARRAY(x)) || !PyArray_ISNOTSWAPPED(ARRAY(x))) return -1;
  int64_t size = type == NPY_FLOAT ? 4 : 8;
  for (int i = 0; i < 2; i++) {
    if (PyArray_STRIDES(ARRAY(x))[i] % size) return -1;
    steps[i] = PyArray_STRIDES(ARRAY(x))[i] / size;
  }
  return 0;
}
enum { FEW = 4096 };  // elements of a second factor that is copied, where that has to be turned
#define SMALL(T, suffix)                                                                            \
  {                                                                                                 \
    T space[FEW];                                                                                   \
    const T *y = DATA(b);                                                                           \
    if (bs[1] != 1 || bs[0] != n) turned_##suffix(space, y, bs[1], k, n), y = space;                \
    small_product_##suffix(DATA(out), base, down, DATA(a), as[0], y, m, n, k);                      \
  }
static PyObject *product(PyObject *a, PyObject *b, const void *base, int64_t down, int type) {
  int64_t as[2], bs[2];
  if (steps_of(a, type, as) || steps_of(b, type, bs) || DIMS(a)[1] != DIMS(b)[0]) return NULL;
  npy_intp m = DIMS(a)[0], k = DIMS(a)[1], n = DIMS(b)[1], dims[2] = {m, n};
  int rows = as[1] == 1 && ((bs[1] == 1 && bs[0] == n) || (bs[0] == 1 && bs[1] >= k));
  if (rows && m && n && k && k * n <= FEW && m * n * k <= 4 * FEW) {
    PyObject *out = fresh(2, dims, type);
    if (!out) return NULL;
    if (type == NPY_FLOAT) SMALL(float, f)
    else SMALL(double, d)
    return out;
  }
  PyObject *out = PyObject_CallFunctionObjArgs(numpy_matmul, a, b, NULL);
  if (out && base) {
    if (!in_rows(out, type)) {
      Py_DECREF(out);
      return NULL;
    }
    if (type == NPY_FLOAT) add_base_f(DATA(out), base, down, m, n);
    else add_base_d(DATA(out), base, down, m, n);
  }
  return out;
}
static PyObject *mm(PyObject *const *a, Py_ssize_t n) {
  if (n != 2 || !PyArray_CheckExact(a[0])) return NULL;
  int type = PyArray_TYPE(ARRAY(a[0]));
  return type == NPY_FLOAT || type == NPY_DOUBLE ? product(a[0], a[1], NULL, 0, type) : NULL;
}
static int is_one(PyObject *o) {
  return PyLong_CheckExact(o) ? PyLong_AsLong(o) == 1 : PyFloat_CheckExact(o) && PyFloat_AS_DOUBLE(o) == 1;
}
static PyObject *addmm(PyObject *const *a, Py_ssize_t n) {
  int type = n == 5 ? real(a[0]) : -1;
  if (type < 0 || !is_one(a[3]) || !is_one(a[4]) || !PyArray_CheckExact(a[1]) || !PyArray_CheckExact(a[2]))
    return NULL;
  if (NDIM(a[1]) != 2 || NDIM(a[2]) != 2 || NDIM(a[0]) < 1 || NDIM(a[0]) > 2) return NULL;
  int64_t rows = DIMS(a[1])[0], columns = DIMS(a[2])[1];
  if (DIMS(a[0])[NDIM(a[0]) - 1] != columns || (NDIM(a[0]) == 2 && DIMS(a[0])[0] != rows)) return NULL;
  return product(a[1], a[2], DATA(a[0]), NDIM(a[0]) == 2 ? columns : 0, type);
}

// Elements that are moved: of any type but objects
static int moved(PyObject *o) {
  return PyArray_CheckExact(o) && PyArray_IS_C_CONTIGUOUS(ARRAY(o)) && !PyDataType_REFCHK(PyArray_DESCR(ARRAY(o)));
}
static PyObject *fresh_like(PyObject *x, int nd, npy_intp *dims) {
  PyArray_Descr *type = PyArray_DESCR(ARRAY(x));
  Py_INCREF(type);
  return PyArray_Empty(nd, dims, type, 0);
}
// cat and stack: arrays in rows of one type, joined along a dim, which stack makes
static PyObject *joined(PyObject *const *a, Py_ssize_t n, int stacked) {
  int64_t dim;
  Py_ssize_t count = n == 2 ? count_of(a[0]) : -1;
  PyObject *first = count > 0 && !whole(a[1], &dim) ? item(a[0], 0) : NULL;
  if (!first || !moved(first)) return NULL;
  int nd = NDIM(first), out_nd = nd + stacked;
  if (out_nd < 1 || out_nd > 32 || dim < -out_nd || dim >= out_nd) return NULL;
  if (dim < 0) dim += out_nd;
  npy_intp dims[32], total = stacked ? count : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *x = item(a[0], i);
    if (!moved(x) || PyArray_DESCR(ARRAY(x)) != PyArray_DESCR(ARRAY(first)) || NDIM(x) != nd) return NULL;
    for (int d = 0; d < nd; d++)
      if ((stacked || d != dim) && DIMS(x)[d] != DIMS(first)[d]) return NULL;
    if (!stacked) total += DIMS(x)[dim];
  }
  int64_t outer = 1, inner = PyArray_ITEMSIZE(ARRAY(first));
  for (int d = 0; d < nd; d++) {
    if (d < dim) outer *= DIMS(first)[d];
    else if (stacked || d > dim) inner *= DIMS(first)[d];
    dims[stacked && d >= dim ? d + 1 : d] = DIMS(first)[d];
  }
  dims[dim] = total;
  PyObject *out = fresh_like(first, out_nd, dims);
  if (!out) return NULL;
  char *to = DATA(out);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *x = item(a[0], i);
    size_t piece = (size_t)(stacked ? inner : DIMS(x)[dim] * inner);
    const char *from = DATA(x);
    for (int64_t o = 0; o < outer; o++) memcpy(to + (int64_t)o * total * inner, from + o * (int64_t)piece, piece);
    to += piece;
  }
  return out;
}
static PyObject *cat(PyObject *const *a, Py_ssize_t n) { return joined(a, n, 0); }
static PyObject *stack(PyObject *const *a, Py_ssize_t n) { return joined(a, n, 1); }

static int all_below(const int64_t *index, int64_t n, int64_t size) {
  uint64_t worst = 0;
  for (int64_t i = 0; i < n; i++) worst = (uint64_t)index[i] > worst ? (uint64_t)index[i] : worst;
  return n == 0 || worst < (uint64_t)size;
}
// Pieces of `bytes` from places of a list, which are as long from each other
static void pick(char *to, const char *from, const int64_t *index, int64_t n, int64_t bytes) {
  switch (bytes) {
    case 4:
      for (int64_t i = 0; i < n; i++) memcpy(to + i * 4, from + index[i] * 4, 4);
      return;
    case 8:
      for (int64_t i = 0; i < n; i++) memcpy(to + i * 8, from + index[i] * 8, 8);
      return;
    default:
      for (int64_t i = 0; i < n; i++) memcpy(to + i * bytes, from + index[i] * bytes, (size_t)bytes);
  }
}
static PyObject *rows_at(PyObject *x, PyObject *index, int dim, int nd, npy_intp *dims) {
  int64_t outer = 1, bytes = PyArray_ITEMSIZE(ARRAY(x)), count = SIZE(index), size = DIMS(x)[dim];
  if (!all_below(DATA(index), count, size)) return NULL;
  for (int d = 0; d < NDIM(x); d++) {
    if (d < dim) outer *= DIMS(x)[d];
    else if (d > dim) bytes *= DIMS(x)[d];
  }
  PyObject *out = fresh_like(x, nd, dims);
  if (!out) return NULL;
  for (int64_t o = 0; o < outer; o++)
    pick((char *)DATA(out) + o * count * bytes, (const char *)DATA(x) + o * size * bytes, DATA(index), count, bytes);
  return out;
}
static PyObject *index_select(PyObject *const *a, Py_ssize_t n) {
  int64_t dim;
  npy_intp dims[32];
  if (n != 3 || !moved(a[0]) || !in_rows(a[2], NPY_INT64) || NDIM(a[2]) != 1 || whole(a[1], &dim)) return NULL;
  int nd = NDIM(a[0]);
  if (nd < 1 || nd > 32 || dim < -nd || dim >= nd) return NULL;
  if (dim < 0) dim += nd;
  for (int d = 0; d < nd; d++) dims[d] = d == dim ? SIZE(a[2]) : DIMS(a[0])[d];
  return rows_at(a[0], a[2], (int)dim, nd, dims);
}
static PyObject *embedding(PyObject *const *a, Py_ssize_t n) {
  npy_intp dims[32];
  if (n != 5 || !moved(a[0]) || NDIM(a[0]) != 2 || !in_rows(a[1], NPY_INT64) || NDIM(a[1]) > 31) return NULL;
  for (int d = 0; d < NDIM(a[1]); d++) dims[d] = DIMS(a[1])[d];
  dims[NDIM(a[1])] = DIMS(a[0])[1];
  return rows_at(a[0], a[1], 0, NDIM(a[1]) + 1, dims);
}
static PyObject *embedding_backward(PyObject *const *a, Py_ssize_t n) {
  int type = n == 5 ? real(a[0]) : -1;
  int64_t rows, skip;
  if (type < 0 || !in_rows(a[1], NPY_INT64) || NDIM(a[0]) != NDIM(a[1]) + 1 || a[4] != Py_False) return NULL;
  if (whole(a[2], &rows) || whole(a[3], &skip) || rows < 0 || !all_below(DATA(a[1]), SIZE(a[1]), rows)) return NULL;
  for (int d = 0; d < NDIM(a[1]); d++)
    if (DIMS(a[0])[d] != DIMS(a[1])[d]) return NULL;
  npy_intp dims[2] = {rows, DIMS(a[0])[NDIM(a[1])]};
  PyObject *out = zeros(2, dims, type);
  if (!out) return NULL;
  if (skip < 0) skip = INT64_MIN;
  Py_BEGIN_ALLOW_THREADS
  if (type == NPY_FLOAT)
    pb_scatter_rows_f(DATA(out), rows, dims[1], DATA(a[1]), DATA(a[0]), SIZE(a[1]), skip, 0);
  else
    pb_scatter_rows_d(DATA(out), rows, dims[1], DATA(a[1]), DATA(a[0]), SIZE(a[1]), skip, 0);
  Py_END_ALLOW_THREADS
  return out;
}
// One element along a dim for each entry of an index, which is as large in all other dims
static PyObject *gather(PyObject *const *a, Py_ssize_t n) {
  int64_t dim, outer = 1, inner = 1;
  if (n != 4 || !moved(a[0]) || !in_rows(a[2], NPY_INT64) || whole(a[1], &dim)) return NULL;
  int nd = NDIM(a[0]);
  if (nd < 1 || NDIM(a[2]) != nd || dim < -nd || dim >= nd) return NULL;
  if (dim < 0) dim += nd;
  for (int d = 0; d < nd; d++) {
    if (d != dim && DIMS(a[0])[d] != DIMS(a[2])[d]) return NULL;
    if (d < dim) outer *= DIMS(a[0])[d];
    else if (d > dim) inner *= DIMS(a[0])[d];
  }
  int64_t size = DIMS(a[0])[dim], count = DIMS(a[2])[dim], bytes = PyArray_ITEMSIZE(ARRAY(a[0]));
  const int64_t *index = DATA(a[2]);
  if (!all_below(index, SIZE(a[2]), size)) return NULL;
  PyObject *out = fresh_like(a[0], nd, DIMS(a[2]));
  if (!out) return NULL;
  const char *from = DATA(a[0]);
  char *to = DATA(out);
  for (int64_t o = 0; o < outer; o++, from += size * inner * bytes)
    if (inner == 1) {
      pick(to, from, index, count, bytes);
      to += count * bytes;
      index += count;
    } else
      for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < inner; k++, to += bytes, index++)
          memcpy(to, from + (*index * inner + k) * bytes, (size_t)bytes);
  return out;
}

// Convolution, by the library of matrix products (conv.h), which is asked for where it is first missed
static void (*convolutions[2])(const pb_conv *);  // of float and double
static PyObject *asked_for;                        // called with "is it double?"
static int asked[2];

static int has_convolution(int type) {
  int wide = type == NPY_DOUBLE;
  if (!convolutions[wide] && asked_for && !asked[wide]) {
    asked[wide] = 1;
    PyObject *done = PyObject_CallFunctionObjArgs(asked_for, wide ? Py_True : Py_False, NULL);
    if (!done) PyErr_Clear();  // what went wrong leaves it to NumPy
    Py_XDECREF(done);
  }
  return convolutions[wide] != NULL;
}
// The last of three numbers for each dim, of which a list has one or all
static int of_dims(PyObject *list, int rank, int64_t rest, int64_t *numbers) {
  Py_ssize_t n = count_of(list);
  if (n != 1 && n != rank) return -1;
  for (int i = 0; i < 3; i++) numbers[i] = rest;
  for (int i = 0; i < rank; i++) {
    if (whole(item(list, n == 1 ? 0 : i), &numbers[3 - rank + i])) return -1;
    if (numbers[3 - rank + i] < rest || numbers[3 - rank + i] > 1 << 20) return -1;
  }
  return 0;
}
// numbers: stride, padding, dilation, transposed, output_padding, groups; dims of the result.  1 if it
// is a product of matrices, which NumPy knows.
static int convolution_of(PyObject *x, PyObject *weight, PyObject *const *numbers, pb_conv *c, npy_intp *dims) {
  int nd = NDIM(x), rank = nd - 2, single = 1;
  int64_t groups;
  if (rank < 1 || rank > 3 || NDIM(weight) != nd || SIZE(x) == 0 || SIZE(weight) == 0) return -1;
  if (numbers[3] != Py_False || whole(numbers[5], &groups) || groups < 1) return -1;
  if (of_dims(numbers[0], rank, 1, c->stride) || of_dims(numbers[1], rank, 0, c->padding) ||
      of_dims(numbers[2], rank, 1, c->dilation))
    return -1;
  c->n = dims[0] = DIMS(x)[0];
  c->groups = groups;
  c->inner = DIMS(weight)[1];
  dims[1] = DIMS(weight)[0];
  if (dims[1] % groups || DIMS(x)[1] != c->inner * groups) return -1;
  c->outer = dims[1] / groups;
  for (int i = 0; i < 3; i++) {
    int d = i - (3 - rank) + 2;
    c->image[i] = d < 2 ? 1 : DIMS(x)[d];
    c->kernel[i] = d < 2 ? 1 : DIMS(weight)[d];
    int64_t room = c->image[i] + 2 * c->padding[i] - c->dilation[i] * (c->kernel[i] - 1) - 1;
    if (room < 0) return -1;
    c->counts[i] = room / c->stride[i] + 1;
    if (d >= 2) dims[d] = c->counts[i];
    single &= c->kernel[i] == 1 && c->stride[i] == 1 && c->padding[i] == 0;
  }
  return single && groups == 1;
}
static void convolve(const pb_conv *c, int type) {
  Py_BEGIN_ALLOW_THREADS
  convolutions[type == NPY_DOUBLE](c);
  Py_END_ALLOW_THREADS
}
static PyObject *convolution(PyObject *const *a, Py_ssize_t n) {
  pb_conv c = {0};
  npy_intp dims[5];
  int type = n == 9 ? real(a[0]) : -1;
  if (type < 0 || !in_rows(a[1], type) || convolution_of(a[0], a[1], a + 3, &c, dims)) return NULL;
  if (optional(a[2], type, dims[1], &c.bias) || (a[2] != Py_None && NDIM(a[2]) != 1)) return NULL;
  if (!has_convolution(type)) return NULL;
  PyObject *out = fresh(NDIM(a[0]), dims, type);
  if (!out) return NULL;
  c.x = DATA(a[0]);
  c.weight = DATA(a[1]);
  c.map = DATA(out);
  convolve(&c, type);
  return out;
}
#define ADD_PLANES(T)                                                                               \
  for (int64_t k = 0; k < channels; k++) {                                                          \
    double total = 0;                                                                               \
    for (int64_t i = 0; i < examples; i++) {                                                        \
      const T *x = (const T *)from + (i * channels + k) * size;                                     \
      T part = 0;                                                                                   \
      for (int64_t j = 0; j < size; j++) {                                                          \
        part += x[j];                                                                               \
        if (j % 256 == 255) total += part, part = 0;                                                \
      }                                                                                             \
      total += part;                                                                                \
    }                                                                                               \
    ((T *)to)[k] = (T)total;                                                                        \
  }
static void add_planes(void *to, const void *from, int64_t examples, int64_t channels, int64_t size, int type) {
  if (type == NPY_FLOAT) ADD_PLANES(float)
  else ADD_PLANES(double)
}
// grad_output, input, weight, bias_sizes, the numbers, output_mask
static PyObject *convolution_backward(PyObject *const *a, Py_ssize_t n) {
  pb_conv c = {0};
  npy_intp dims[5];
  int type = n == 11 ? real(a[0]) : -1, flags[3];
  if (type < 0 || !in_rows(a[1], type) || !in_rows(a[2], type) || wanted(a[10], flags)) return NULL;
  if (convolution_of(a[1], a[2], a + 4, &c, dims) < 0 || NDIM(a[0]) != NDIM(a[1])) return NULL;
  if (memcmp(dims, DIMS(a[0]), sizeof *dims * (size_t)NDIM(a[0])) || !has_convolution(type)) return NULL;
  PyObject *made[3] = {0};
  if (flags[0]) made[0] = like(a[1]);
  if (flags[1]) made[1] = like(a[2]);
  if (flags[2]) made[2] = fresh(1, dims + 1, type);
  if (!PyErr_Occurred()) {
    c.map = DATA(a[0]);
    for (int i = 0; i < 2; i++) {
      if (!made[i]) continue;
      c.what = i + 1;
      c.x = i == 0 ? DATA(made[0]) : DATA(a[1]);
      c.weight = i == 1 ? DATA(made[1]) : DATA(a[2]);
      convolve(&c, type);
    }
    if (made[2])
      add_planes(DATA(made[2]), DATA(a[0]), c.n, dims[1], SIZE(a[0]) / (c.n * dims[1]), type);
  }
  return three(made);
}

// Reductions of neighbouring dims: (outer, n, inner), and the dims of the result
static int reduced(PyObject *x, PyObject *over, PyObject *keep, job *j, int *nd, npy_intp *dims) {
  int low = 0, high = NDIM(x), all = NDIM(x);
  if (all > 32 || SIZE(x) == 0 || !PyBool_Check(keep)) return -1;
  Py_ssize_t count = over == Py_None ? 0 : PyLong_CheckExact(over) ? 1 : count_of(over);
  if (count < 0 || count > all) return -1;
  if (count) {
    uint64_t gone = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
      int64_t d;
      if (whole(PyLong_CheckExact(over) ? over : item(over, i), &d) || d < -all || d >= all) return -1;
      gone |= (uint64_t)1 << (d < 0 ? d + all : d);
    }
    low = __builtin_ctzll(gone);
    high = low + (int)count;
    if (gone != (((uint64_t)1 << count) - 1) << low) return -1;
  }
  j->rows = j->n = j->inner = 1;
  *nd = 0;
  for (int d = 0; d < all; d++) {
    *(d < low ? &j->rows : d < high ? &j->n : &j->inner) *= DIMS(x)[d];
    if (d < low || d >= high) dims[(*nd)++] = DIMS(x)[d];
    else if (keep == Py_True) dims[(*nd)++] = 1;
  }
  j->from[0] = DATA(x);
  return 0;
}
enum { SUM_OF, MEAN_OF, NORM_OF };
static PyObject *sum_of(PyObject *x, PyObject *over, PyObject *keep, int kind) {
  job j = {{0}};
  int type = real(x), nd;
  npy_intp dims[32];
  if (type < 0 || reduced(x, over, keep, &j, &nd, dims)) return NULL;
  if (j.inner > 1 && kind == NORM_OF) return NULL;
  PyObject *out = fresh(nd, dims, type);
  if (!out) return NULL;
  if (j.inner > 1) {
    j.parts = (j.inner + COLUMNS - 1) / COLUMNS;
    j.eps = kind == MEAN_OF ? (double)j.n : 1;
    j.to[0] = DATA(out);
    shared(TYPED(sum_columns_part), &j, j.rows * j.parts, 1, SIZE(x));
    return out;
  }
  double few[64], *sums = few;
  j.parts = j.rows > 16 || j.n < 1 << 16 ? 1 : j.n >> 15;
  if (j.rows * j.parts > 64 && !(sums = PyMem_Malloc((size_t)(j.rows * j.parts) * sizeof *sums))) {
    Py_DECREF(out);
    return PyErr_NoMemory();
  }
  j.to[0] = sums;
  j.flag = kind == NORM_OF;
  shared(TYPED(sum_part), &j, j.rows * j.parts, CHUNK * j.parts / j.n, SIZE(x));
  for (int64_t i = 0; i < j.rows; i++) {
    double total = 0;
    for (int64_t p = 0; p < j.parts; p++) total += sums[i * j.parts + p];
    if (kind == MEAN_OF) total /= (double)j.n;
    if (kind == NORM_OF) total = sqrt(total);
    if (type == NPY_FLOAT) ((float *)DATA(out))[i] = (float)total;
    else ((double *)DATA(out))[i] = total;
  }
  if (sums != few) PyMem_Free(sums);
  return out;
}
static PyObject *sum_all(PyObject *const *a, Py_ssize_t n) {
  return n == 2 && a[1] == Py_None ? sum_of(a[0], Py_None, Py_False, SUM_OF) : NULL;
}
static PyObject *sum_dims(PyObject *const *a, Py_ssize_t n) {
  return n == 4 && a[3] == Py_None ? sum_of(a[0], a[1], a[2], SUM_OF) : NULL;
}
static PyObject *mean_all(PyObject *const *a, Py_ssize_t n) {
  return n == 2 && a[1] == Py_None ? sum_of(a[0], Py_None, Py_False, MEAN_OF) : NULL;
}
static PyObject *mean_dims(PyObject *const *a, Py_ssize_t n) {
  return n == 4 && a[3] == Py_None ? sum_of(a[0], a[1], a[2], MEAN_OF) : NULL;
}
// Squares that the type does not hold well are left to NumPy.
static int well_held(PyObject *x, double least) {
  for (int64_t i = 0; i < SIZE(x); i++) {
    double v = PyArray_TYPE(ARRAY(x)) == NPY_FLOAT ? ((float *)DATA(x))[i] : ((double *)DATA(x))[i];
    if (!(v > least && v < HUGE_VAL)) return 0;
  }
  return 1;
}
static PyObject *norm(PyObject *const *a, Py_ssize_t n) {
  if (n != 5 || a[4] != Py_None) return NULL;
  if (!(PyLong_CheckExact(a[1]) ? PyLong_AsLong(a[1]) == 2 : PyFloat_CheckExact(a[1]) && PyFloat_AS_DOUBLE(a[1]) == 2))
    return NULL;
  PyObject *out = sum_of(a[0], a[2], a[3], NORM_OF);
  if (out && !well_held(out, 1e-15)) Py_CLEAR(out);
  return out;
}
static PyObject *variance(PyObject *const *a, Py_ssize_t n) {
  job j = {{0}};
  int type = n == 4 ? real(a[0]) : -1, nd;
  int64_t correction = 1;
  npy_intp dims[32];
  if (type < 0 || reduced(a[0], a[1], a[3], &j, &nd, dims) || j.inner > 1) return NULL;
  if ((a[2] != Py_None && whole(a[2], &correction)) || j.n <= correction) return NULL;
  if (j.n > 1 << 20) return NULL;  // one row is not shared
  PyObject *out = fresh(nd, dims, type);
  if (!out) return NULL;
  j.eps = (double)(j.n - correction);
  j.to[0] = DATA(out);
  shared(TYPED(variance_part), &j, j.rows, CHUNK / j.n, SIZE(a[0]));
  if (!well_held(out, 1e-30)) Py_CLEAR(out);
  return out;
}
static PyObject *highest(PyObject *const *a, Py_ssize_t n, int values) {
  job j = {{0}};
  int type = n == 3 ? real(a[0]) : -1, nd;
  npy_intp dims[32];
  if (type < 0 || (values && !PyLong_CheckExact(a[1])) || reduced(a[0], a[1], a[2], &j, &nd, dims)) return NULL;
  if (j.inner > 1 || NDIM(a[0]) == 0 || (a[1] == Py_None && a[2] == Py_True)) return NULL;
  PyObject *best = values ? fresh(nd, dims, type) : NULL, *at = fresh(nd, dims, NPY_INT64), *all = at;
  if (PyErr_Occurred()) all = NULL;
  else {
    j.to[0] = best ? DATA(best) : NULL;
    j.to[1] = DATA(at);
    shared(TYPED(highest_part), &j, j.rows, CHUNK / j.n, SIZE(a[0]));
    if (values) all = PyTuple_Pack(2, best, at);
  }
  Py_XDECREF(best);
  if (all != at) Py_XDECREF(at);
  return all;
}
static PyObject *max_along(PyObject *const *a, Py_ssize_t n) { return highest(a, n, 1); }
static PyObject *argmax(PyObject *const *a, Py_ssize_t n) { return highest(a, n, 0); }

// Views: other dims of the same memory
static PyObject *show(PyObject *x, int nd, npy_intp *dims, npy_intp *strides, int64_t offset) {
  PyArray_Descr *type = PyArray_DESCR(ARRAY(x));
  Py_INCREF(type);
  PyObject *view = PyArray_NewFromDescr(&PyArray_Type, type, nd, dims, strides, PyArray_BYTES(ARRAY(x)) + offset,
                                        PyArray_FLAGS(ARRAY(x)) & NPY_ARRAY_WRITEABLE, NULL);
  if (view && PyArray_SetBaseObject(ARRAY(view), Py_NewRef(x)) < 0) Py_CLEAR(view);
  return view;
}
// Can views of it be made here?  Its numbers of dims, from which there is a dim to add.
static int showable(PyObject *x) {
  return PyArray_CheckExact(x) && NDIM(x) < 32 && !PyDataType_REFCHK(PyArray_DESCR(ARRAY(x))) && SIZE(x) > 0;
}
static PyObject *view(PyObject *const *a, Py_ssize_t n) {
  npy_intp dims[32], strides[32];
  if (n != 2 || !showable(a[0]) || !PyArray_IS_C_CONTIGUOUS(ARRAY(a[0]))) return NULL;
  Py_ssize_t nd = count_of(a[1]), hole = -1;
  int64_t known = 1, size = SIZE(a[0]);
  if (nd < 0 || nd > 32) return NULL;
  for (Py_ssize_t i = 0; i < nd; i++) {
    int64_t d;
    if (whole(item(a[1], i), &d) || d == 0 || d < -1 || (d < 0 && hole >= 0) || d > size) return NULL;
    dims[i] = d;
    if (d < 0) hole = i;
    else if ((known *= d) > size) return NULL;
  }
  if (hole >= 0) {
    dims[hole] = size / known;
    known *= dims[hole];
  }
  if (known != size) return NULL;
  int64_t step = PyArray_ITEMSIZE(ARRAY(a[0]));
  for (Py_ssize_t i = nd; i-- > 0; step *= dims[i]) strides[i] = step;
  return show(a[0], (int)nd, dims, strides, 0);
}
static PyObject *unsqueeze(PyObject *const *a, Py_ssize_t n) {
  npy_intp dims[32], strides[32];
  int64_t dim;
  if (n != 2 || !showable(a[0]) || whole(a[1], &dim)) return NULL;
  int nd = NDIM(a[0]);
  if (nd > 30 || dim < -nd - 1 || dim > nd) return NULL;
  if (dim < 0) dim += nd + 1;
  const npy_intp *sizes = DIMS(a[0]), *steps = PyArray_STRIDES(ARRAY(a[0]));
  for (int i = 0; i < nd; i++) {
    dims[i < dim ? i : i + 1] = sizes[i];
    strides[i < dim ? i : i + 1] = steps[i];
  }
  dims[dim] = 1;
  strides[dim] = dim == nd ? PyArray_ITEMSIZE(ARRAY(a[0])) : sizes[dim] * steps[dim];
  return show(a[0], nd + 1, dims, strides, 0);
}
static PyObject *expand(PyObject *const *a, Py_ssize_t n) {
  npy_intp dims[32], strides[32];
  if (n != 3 || !showable(a[0])) return NULL;
  Py_ssize_t nd = count_of(a[1]), extra = nd - NDIM(a[0]);
  if (nd > 32 || extra < 0) return NULL;
  for (Py_ssize_t i = nd; i-- > 0;) {
    int64_t want;
    if (whole(item(a[1], i), &want)) return NULL;
    if (i >= extra) {
      int64_t have = DIMS(a[0])[i - extra];
      if (want == -1) want = have;
      if (want < 1 || (want != have && have != 1)) return NULL;
      strides[i] = want == have ? PyArray_STRIDES(ARRAY(a[0]))[i - extra] : 0;
    } else {
      if (want < 1) return NULL;
      strides[i] = want == 1 && i + 1 < nd ? dims[i + 1] * strides[i + 1] : 0;
    }
    dims[i] = want;
  }
  return show(a[0], (int)nd, dims, strides, 0);
}
static int dim_of(PyObject *x, PyObject *o, int64_t *dim) {
  int nd = NDIM(x);
  if (nd == 0 || whole(o, dim) || *dim < -nd || *dim >= nd) return -1;
  if (*dim < 0) *dim += nd;
  return 0;
}
static PyObject *pick_one(PyObject *const *a, Py_ssize_t n) {
  npy_intp dims[32], strides[32];
  int64_t dim, index;
  if (n != 3 || !showable(a[0]) || dim_of(a[0], a[1], &dim) || whole(a[2], &index)) return NULL;
  const npy_intp *sizes = DIMS(a[0]), *steps = PyArray_STRIDES(ARRAY(a[0]));
  if (index < -sizes[dim] || index >= sizes[dim]) return NULL;
  if (index < 0) index += sizes[dim];
  int nd = 0;
  for (int i = 0; i < NDIM(a[0]); i++)
    if (i != dim) {
      dims[nd] = sizes[i];
      strides[nd++] = steps[i];
    }
  return show(a[0], nd, dims, strides, index * steps[dim]);
}
static PyObject *slice(PyObject *const *a, Py_ssize_t n) {
  npy_intp dims[32], strides[32];
  int64_t dim, step, low = 0, high;
  if (n != 5 || !showable(a[0]) || dim_of(a[0], a[1], &dim) || whole(a[4], &step) || step < 1) return NULL;
  int64_t size = high = DIMS(a[0])[dim];
  if ((a[2] != Py_None && whole(a[2], &low)) || (a[3] != Py_None && whole(a[3], &high))) return NULL;
  if (low < 0) low += size;
  if (high < 0) high += size;
  low = low < 0 ? 0 : low;
  high = high > size ? size : high;
  if (low >= high) return NULL;  // nothing is left
  for (int i = 0; i < NDIM(a[0]); i++) {
    dims[i] = DIMS(a[0])[i];
    strides[i] = PyArray_STRIDES(ARRAY(a[0]))[i];
  }
  int64_t offset = low * strides[dim];
  dims[dim] = (high - low - 1) / step + 1;
  if (step > size) return NULL;
  strides[dim] *= step;
  return show(a[0], NDIM(a[0]), dims, strides, offset);
}

static const struct {
  const char *name;
  kernel run;
  int shows;  // is the result a view of the first argument, which must then not be copied?
} kernels[] = {
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"softmax_backward", softmax_backward},
    {"log_softmax_backward", log_softmax_backward},
    {"layer_norm", layer_norm},
    {"layer_norm_backward", layer_norm_backward},
    {"gelu", gelu},
    {"gelu_backward", gelu_backward},
    {"silu", silu},
    {"silu_backward", silu_backward},
    {"nll", nll},
    {"nll_backward", nll_backward},
    {"batch_norm", batch_norm},
    {"batch_norm_fixed", batch_norm_fixed},
    {"batch_norm_backward", batch_norm_backward},
    {"max_pool2d", max_pool2d},
    {"max_pool2d_backward", max_pool2d_backward},
    {"gru_cell", gru_cell},
    {"gru_cell_backward", gru_cell_backward},
    {"lstm_cell", lstm_cell},
    {"lstm_cell_backward", lstm_cell_backward},
    {"convolution", convolution},
    {"convolution_backward", convolution_backward},
    {"sum", sum_all},
    {"sum_dims", sum_dims},
    {"mean", mean_all},
    {"mean_dims", mean_dims},
    {"norm", norm},
    {"variance", variance},
    {"max_along", max_along},
    {"argmax", argmax},
    {"view", view, 1},
    {"unsqueeze", unsqueeze, 1},
    {"expand", expand, 1},
    {"select", pick_one, 1},
    {"slice", slice, 1},
    {"mm", mm},
    {"addmm", addmm},
    {"cat", cat},
    {"stack", stack},
    {"gather", gather},
    {"index_select", index_select},
    {"embedding", embedding},
    {"embedding_backward", embedding_backward},
};

// ---------------------------------------------------------------------------------------------------
// A kernel as Python sees it: called as that of the table is, (xp, *arguments), which runs in its place
// where a call does not fit

typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  kernel run;
  int shows;
  PyObject *slow;
} Kernel;

// Does an array show elements again and again, as the gradient of a sum does?
static int is_spread(PyObject *o) {
  if (!PyArray_CheckExact(o) || PyArray_IS_C_CONTIGUOUS(ARRAY(o))) return 0;
  for (int i = 0; i < NDIM(o); i++)
    if (PyArray_STRIDES(ARRAY(o))[i] == 0 && DIMS(o)[i] > 1) return 1;
  return 0;
}
// The kernel with a copy of its first argument.
static PyObject *with_whole(kernel run, PyObject *const *args, Py_ssize_t n) {
  PyObject *given[16];
  int type = PyArray_TYPE(ARRAY(args[0]));
  if (n > 16 || (type != NPY_FLOAT && type != NPY_DOUBLE)) return NULL;
  memcpy(given, args, sizeof *args * (size_t)n);
  given[0] = like(args[0]);
  if (!given[0]) return NULL;
  PyObject *out = PyArray_CopyInto(ARRAY(given[0]), ARRAY(args[0])) < 0 ? NULL : run(given, n);
  Py_DECREF(given[0]);
  return out;
}
static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
  Kernel *k = (Kernel *)self;
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (!names && n > 1) {
    PyObject *out = !k->shows && is_spread(args[1]) ? with_whole(k->run, args + 1, n - 1) : k->run(args + 1, n - 1);
    if (out || PyErr_Occurred()) return out;
  }
  return PyObject_Vectorcall(k->slow, args, nargsf, names);
}
static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(((Kernel *)self)->slow);
  return 0;
}
static int kernel_clear(PyObject *self) {
  Py_CLEAR(((Kernel *)self)->slow);
  return 0;
}
static void kernel_free(PyObject *self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(((Kernel *)self)->slow);
  PyObject_GC_Del(self);
}
static PyMemberDef members[] = {{"slow", T_OBJECT, offsetof(Kernel, slow), READONLY, "the kernel of the table"}, {NULL}};
static PyTypeObject KernelType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pullback.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Kernel, call),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = kernel_traverse,
    .tp_clear = kernel_clear,
    .tp_dealloc = kernel_free,
    .tp_members = members,
};

// kernel(name, slow): the kernel of that name; KeyError if there is none
static PyObject *make_kernel(PyObject *m, PyObject *args) {
  const char *name;
  PyObject *slow;
  if (!PyArg_ParseTuple(args, "sO", &name, &slow)) return NULL;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (!strcmp(name, kernels[i].name)) {
      Kernel *k = PyObject_GC_New(Kernel, &KernelType);
      if (!k) return NULL;
      k->call = kernel_call;
      k->run = kernels[i].run;
      k->shows = kernels[i].shows;
      k->slow = Py_NewRef(slow);
      PyObject_GC_Track((PyObject *)k);
      return (PyObject *)k;
    }
  return PyErr_Format(PyExc_KeyError, "%s", name);
}
// ---------------------------------------------------------------------------------------------------
// place(depth): `errors.place` for generated functions, which ask in every call that is recorded

static PyObject *generated_names;  // how the names of generated functions begin
static PyObject *general_place, *own_names, *user_names, *get_frame;

static PyObject *place(PyObject *m, PyObject *depth) {
  PyObject *above = get_frame ? PyLong_FromLong(PyLong_AsLong(depth) - 1) : NULL;
  if (!above) return NULL;
  PyFrameObject *frame = (PyFrameObject *)PyObject_CallOneArg(get_frame, above);
  Py_DECREF(above);
  if (!frame) return NULL;
  PyObject *found = NULL;
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *name = code->co_filename;
    int known = PySet_Contains(own_names, name);
    if (!known && PySet_Contains(user_names, name) == 1)
      found = Py_BuildValue("Oi", code, PyFrame_GetLasti(frame));
    else if (!known && !PyUnicode_Tailmatch(name, generated_names, 0, PY_SSIZE_T_MAX, -1))
      known = -1;
    Py_DECREF(code);
    if (found || known < 0) break;
    PyFrameObject *back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  if (found || PyErr_Occurred()) return found;
  return PyObject_CallOneArg(general_place, depth);  // a file that it has not seen, or no user
}
// find_places(place, own, users): the function that does it in general, and the sets of names that it
// has found out
static PyObject *find_places(PyObject *m, PyObject *args) {
  PyObject *given[3];
  if (!PyArg_ParseTuple(args, "OO!O!", &given[0], &PySet_Type, &given[1], &PySet_Type, &given[2])) return NULL;
  PyObject *system = PyImport_ImportModule("sys");
  if (!system) return NULL;
  Py_XSETREF(get_frame, PyObject_GetAttrString(system, "_getframe"));
  Py_DECREF(system);
  if (!generated_names) generated_names = PyUnicode_FromString("<pullback ");
  if (!get_frame || !generated_names) return NULL;
  Py_XSETREF(general_place, Py_NewRef(given[0]));
  Py_XSETREF(own_names, Py_NewRef(given[1]));
  Py_XSETREF(user_names, Py_NewRef(given[2]));
  Py_RETURN_NONE;
}

// share(address): use the pool of the runtime from now on
static PyObject *share(PyObject *m, PyObject *address) {
  void *given = PyLong_AsVoidPtr(address);
  if (!given && PyErr_Occurred()) return NULL;
  support = given;
  Py_RETURN_NONE;
}

// ask(function): called with "is it double?" where a convolution is first missed
static PyObject *ask(PyObject *m, PyObject *function) {
  Py_XSETREF(asked_for, Py_NewRef(function));
  Py_RETURN_NONE;
}
// take_convolution(is double, address)
static PyObject *take_convolution(PyObject *m, PyObject *args) {
  int wide;
  PyObject *address;
  if (!PyArg_ParseTuple(args, "pO", &wide, &address)) return NULL;
  void *given = PyLong_AsVoidPtr(address);
  if (!given && PyErr_Occurred()) return NULL;
  convolutions[wide] = (void (*)(const pb_conv *))given;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"place", place, METH_O, "The user's place, as errors.place finds it."},
    {"find_places", find_places, METH_VARARGS, "What `place` has to know."},
    {"ask", ask, METH_O, "Say what is called where a convolution is first missed."},
    {"take_convolution", take_convolution, METH_VARARGS, "The convolution of one type."},
    {"kernel", make_kernel, METH_VARARGS, "A kernel by its name, and what runs where it does not fit."},
    {"share", share, METH_O, "Share work with the threads of the runtime."},
    {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pullback_eager", NULL, -1, methods};

PyMODINIT_FUNC PyInit_pullback_eager(void) {
  import_array();
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (!numpy) return NULL;
  numpy_matmul = PyObject_GetAttrString(numpy, "matmul");
  Py_DECREF(numpy);
  if (!numpy_matmul) return NULL;
  if (PyType_Ready(&KernelType) < 0) return NULL;
  return PyModule_Create(&module);
}
