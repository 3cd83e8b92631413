// What generated code and the runtime agree on.  A generated unit exports
//     void pb_bind(const pb_api *);      called once after loading
//     void pb_stage_0(void **p); ...     run the graph up to the next step that needs Python
// and sees the world through `p`, a table of buffer addresses, and through `pb_api`.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int64_t code;   // 0: fine; otherwise the number of the check that failed, from 1; -1: interrupted
  int64_t value;  // the index that was out of range
} pb_status;

// the name of capsules that own memory of the runtime (`memory/storages.py` asks for it)
#define PB_MEMORY "pullback.memory"

// work on chunks begin..end of a kernel
typedef void (*pb_body)(void **p, int64_t begin, int64_t end);

// C[b] = A[b] B[b] + bias; strides count elements, any order; C has unit stride along n; the bias may
// be C itself, which is then added to
typedef struct {
  int64_t batch, m, n, k;
  const void *a, *b, *bias;  // bias may be null
  void *c, *space;  // space for blocks of b, or null: each thread takes a little of its own
  int64_t ab, am, ak, bb, bk, bn, cb, cm, sb, sm, sn;
  double alpha;
} pb_gemm;

// A convolution and its gradients (conv.h); arrays are contiguous, none is empty
typedef struct {
  int64_t what;                     // 0: x and weight give map; 1: map and weight give x; 2: x and map give weight
  int64_t n, groups, inner, outer;  // examples; groups; channels of x and of map in one group
  int64_t image[3], counts[3], kernel[3], stride[3], padding[3], dilation[3];
  const void *x, *weight, *map, *bias;  // bias may be null
  void *space;   // for copies and blocks
  int64_t room;  // its bytes
} pb_conv;

// Maxima over windows of planes, or their gradients (windows.c); planes have less than 2^31 elements
typedef struct {
  int64_t planes, image[3], counts[3], kernel[3], stride[3], padding[3], dilation[3], check;
  const void *x;     // the planes, or the gradients of the maxima
  void *out;         // the maxima, or the gradients of the planes
  int64_t *where;    // places of the maxima in their planes
  pb_status *status;
} pb_windows;

// A product with the entries of a sparse matrix (sparse.c): values and x give rows of out; or x and y give
// the entries of out.  The rows of entries are below `size`, their columns below `depth`.  What is known
// of them, or null: where rows begin, and, of entries that are not in this order, which is in a place; then
// the columns of a product of rows are in order.
typedef struct {
  const int64_t *rows, *cols, *starts, *order;
  const void *values, *x, *y;
  void *out;
  int64_t count, width, size, depth;
  int64_t alone;  // multiplications that are not worth a thread
  int64_t wrap;   // may rows (1), columns (2) count from the end?  Of sums of rows only
} pb_entries;

typedef struct {
  void (*parallel)(pb_body body, void **p, int64_t chunks, int64_t grain);
  void (*sgemm)(const pb_gemm *);
  void (*dgemm)(const pb_gemm *);
  void (*sconv)(const pb_conv *);
  void (*dconv)(const pb_conv *);
  // out[index[i], :] += src[i, :] in the order of i; returns the first bad index + 1, or 0
  int64_t (*scatter_rows_f)(float *out, int64_t rows, int64_t width, const int64_t *index,
                            const float *src, int64_t n, int64_t skip, int wrap);
  int64_t (*scatter_rows_d)(double *out, int64_t rows, int64_t width, const int64_t *index,
                            const double *src, int64_t n, int64_t skip, int wrap);
  void (*bad_index)(pb_status *status, int64_t code, int64_t value);
  void (*max_windows_f)(const pb_windows *);
  void (*max_windows_d)(const pb_windows *);
  void (*spread_windows_f)(const pb_windows *);
  void (*spread_windows_d)(const pb_windows *);
  // running sums or products along the middle one of three dims
  void (*scan_f)(float *out, const float *x, int64_t outer, int64_t n, int64_t inner, int product);
  void (*scan_d)(double *out, const double *x, int64_t outer, int64_t n, int64_t inner, int product);
  void (*scan_l)(int64_t *out, const int64_t *x, int64_t outer, int64_t n, int64_t inner, int product);
  // in loops of unknown length: has a signal's handler raised?  Then Python's error is set
  int (*interrupted)(void);
  // extremes of segments; the first bad index + 1, or 0
  int64_t (*scatter_extreme_f)(float *out, int64_t rows, const int64_t *index, const float *src, int64_t n,
                               int highest, int own);
  int64_t (*scatter_extreme_d)(double *out, int64_t rows, const int64_t *index, const double *src,
                               int64_t n, int highest, int own);
  // Are rows in order, inside, and not longer than that?  Then `starts` says where each begins
  int (*starts)(const int64_t *rows, int64_t count, int64_t size, int64_t *starts, int64_t longest);
  int (*same)(const int64_t *a, const int64_t *b, int64_t count);
  int (*inside)(const int64_t *index, int64_t count, int64_t size);
  // products with sparse matrices; 0, or an entry that is outside, from 1: less than 0 if its column is
  int64_t (*spmm_f)(const pb_entries *);
  int64_t (*spmm_d)(const pb_entries *);
  int64_t (*sddmm_f)(const pb_entries *);
  int64_t (*sddmm_d)(const pb_entries *);
  // a row of such a product, and the products of a row at its n entries; `room` entries can be read
  void (*row_f)(float *out, const float *values, const int64_t *cols, int64_t n, int64_t room,
                const float *dense, int64_t width);
  void (*row_d)(double *out, const double *values, const int64_t *cols, int64_t n, int64_t room,
                const double *dense, int64_t width);
  void (*dots_f)(float *out, const float *x, const int64_t *cols, int64_t n, int64_t room,
                 const float *y, int64_t width);
  void (*dots_d)(double *out, const double *x, const int64_t *cols, int64_t n, int64_t room,
                 const double *y, int64_t width);
} pb_api;

// what a library of products sees of the runtime
typedef struct {
  void (*parallel)(pb_body body, void **p, int64_t chunks, int64_t grain);
  int (*threads)(void);
  void *(*alloc)(size_t bytes);
  void (*free)(void *space);
} pb_support;

// Keep the check that comes first in the graph, whichever thread or kernel finds it: that is what
// eager execution would have met.
__attribute__((noinline, cold, unused)) static void pb_bad_index(pb_status *status, int64_t code,
                                                                 int64_t value) {
  int64_t now = __atomic_load_n(&status->code, __ATOMIC_RELAXED);
  while (!now || code < now)
    if (__atomic_compare_exchange_n(&status->code, &now, code, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      __atomic_store_n(&status->value, value, __ATOMIC_RELAXED);
      return;
    }
}
