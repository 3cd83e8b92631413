// The runtime as one Python extension, compiled once per machine: thread pool, caching allocator,
// matrix product, and the callable that runs generated units.  Read pb.h first.
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stddef.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include "pool.c"
#include "alloc.c"
#include "rows.c"
#include "windows.c"

static int pb_interrupted(void) {
  PyGILState_STATE held = PyGILState_Ensure();
  int raised = PyErr_CheckSignals();
  PyGILState_Release(held);
  return raised;
}

// the products of matrices come later, from libraries of their own
static pb_api api = {pb_parallel, NULL, NULL, NULL, NULL, pb_scatter_rows_f, pb_scatter_rows_d, pb_bad_index,
                     pb_max_windows_f, pb_max_windows_d, pb_spread_windows_f, pb_spread_windows_d,
                     pb_scan_f, pb_scan_d, pb_scan_l, pb_interrupted, pb_scatter_extreme_f,
                     pb_scatter_extreme_d, pb_starts, pb_same, pb_inside};
static const pb_support support = {pb_parallel, pb_get_threads, pb_alloc, pb_free};

#ifndef PyDataType_ELSIZE
#define PyDataType_ELSIZE(d) ((d)->elsize)
#endif
#include "function.c"
#include "same_call.c"
#include "update.c"

static PyObject *set_threads(PyObject *m, PyObject *arg) {
  long n = PyLong_AsLong(arg);
  if (n == -1 && PyErr_Occurred()) return NULL;
  if (n < 1) return PyErr_Format(PyExc_RuntimeError, "set_num_threads expects a positive integer");
  pb_set_threads((int)(n > 1 << 20 ? 1 << 20 : n));
  Py_RETURN_NONE;
}
static PyObject *get_threads(PyObject *m, PyObject *none) { return PyLong_FromLong(pb_get_threads()); }
static PyObject *alloc_info(PyObject *m, PyObject *none) {
  size_t live, kept;
  pb_alloc_info(&live, &kept);
  return Py_BuildValue("nn", (Py_ssize_t)live, (Py_ssize_t)kept);
}
static PyObject *trim(PyObject *m, PyObject *none) {
  pb_trim();
  if (kept_.data) pb_release(kept_.data);
  kept_.data = NULL;
  kept_.bytes = 0;
  Py_RETURN_NONE;
}
// empty(type number, shape): an uninitialised array from the caching allocator
static PyObject *empty(PyObject *m, PyObject *args) {
  spec s;
  int type;
  PyObject *shape;
  if (!PyArg_ParseTuple(args, "iO!", &type, &PyTuple_Type, &shape)) return NULL;
  PyObject *t = Py_BuildValue("(iOO)", type, shape, Py_None);
  if (!t) return NULL;
  int bad = read_spec(t, &s);
  Py_DECREF(t);
  if (bad) return NULL;
  PyArray_Descr *d = PyArray_DescrFromType(type);
  int64_t bytes = (int64_t)s.size * PyDataType_ELSIZE(d);
  Py_DECREF(d);
  return fresh(&s, bytes);
}

// add_product(is double, path): the matrix product of one type from its library
static PyObject *add_product(PyObject *m, PyObject *args) {
  int wide;
  const char *path;
  if (!PyArg_ParseTuple(args, "ps", &wide, &path)) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void (*bind)(const pb_support *) = library ? dlsym(library, "pb_product_bind") : NULL;
  void (*product)(const pb_gemm *) = library ? dlsym(library, "pb_product") : NULL;
  void (*convolution)(const pb_conv *) = library ? dlsym(library, "pb_convolution") : NULL;
  if (!bind || !product || !convolution) {
    const char *why = library ? NULL : dlerror();
    if (library) dlclose(library);
    return PyErr_Format(PyExc_OSError, "cannot load %s: %s", path, why ? why : "a function is missing");
  }
  bind(&support);
  *(wide ? &api.dgemm : &api.sgemm) = product;
  *(wide ? &api.dconv : &api.sconv) = convolution;
  Py_RETURN_NONE;
}

// add_sparse(path): products with sparse matrices from their library
static PyObject *add_sparse(PyObject *m, PyObject *args) {
  const char *path;
  if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void (*bind)(const pb_support *) = library ? dlsym(library, "pb_sparse_bind") : NULL;
  if (!bind) return PyErr_Format(PyExc_OSError, "cannot load %s", path);
  bind(&support);
  api.spmm_f = dlsym(library, "pb_spmm_f32"), api.spmm_d = dlsym(library, "pb_spmm_f64");
  api.sddmm_f = dlsym(library, "pb_sddmm_f32"), api.sddmm_d = dlsym(library, "pb_sddmm_f64");
  api.row_f = dlsym(library, "pb_row_f32"), api.row_d = dlsym(library, "pb_row_f64");
  api.dots_f = dlsym(library, "pb_dots_f32"), api.dots_d = dlsym(library, "pb_dots_f64");
  Py_RETURN_NONE;
}

// support(): where others find what they need of the runtime
static PyObject *share_support(PyObject *m, PyObject *none) { return PyLong_FromVoidPtr((void *)&support); }

// convolution(is double): where that of a type is, once its product has been added
static PyObject *convolution_at(PyObject *m, PyObject *wide) {
  int is_double = PyObject_IsTrue(wide);
  return is_double < 0 ? NULL : PyLong_FromVoidPtr(is_double ? (void *)api.dconv : (void *)api.sconv);
}

static PyMethodDef methods[] = {
    {"convolution", convolution_at, METH_O, "The address of the convolution of one type."},
    {"support", share_support, METH_NOARGS, "The address of what other extensions use."},
    {"update", update, METH_VARARGS, "An elementwise kernel in place on rows of arrays."},
    {"add_product", add_product, METH_VARARGS, "The matrix product of one type from its library."},
    {"add_sparse", add_sparse, METH_VARARGS, "Products with sparse matrices from their library."},
    {"same_call", make_same_call, METH_VARARGS, "Tells calls of a compiled function that are like an earlier one."},
    {"make", make_function, METH_VARARGS, "A callable from a generated unit and its plan."},
    {"set_threads", set_threads, METH_O, "Number of threads, the caller included."},
    {"get_threads", get_threads, METH_NOARGS, ""},
    {"alloc_info", alloc_info, METH_NOARGS, "Bytes in use and bytes kept for reuse."},
    {"trim", trim, METH_NOARGS, "Give kept memory back to the system."},
    {"empty", empty, METH_VARARGS, ""},
    {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pullback_runtime", NULL, -1, methods};

PyMODINIT_FUNC PyInit_pullback_runtime(void) {
  import_array();
  if (PyType_Ready(&FunctionType) < 0 || PyType_Ready(&AlikeType) < 0) return NULL;
  return PyModule_Create(&module);
}
