// sgemm and dgemm: gemm.h for float and for double, with the tile that fits the CPU's registers.
#include <stdint.h>
#include <stdlib.h>
#include "pb.h"

#if defined(__AVX512F__)
#define PB_VB 64
#define MR 14
#elif defined(__AVX__)
#define PB_VB 32
#define MR 6
#else
#define PB_VB 16
#define MR 6
#endif

// memory of this thread that lives until the next call; grows, is never given back
static void *scratch(size_t bytes) {
  static __thread void *space;
  static __thread size_t size;
  if (bytes > size) {
    free(space);
    size = (bytes + 65535) / 4096 * 4096;
    space = aligned_alloc(64, size);
    if (!space) abort();
  }
  return space;
}

#define JOIN_(a, b) a##b
typedef float s_vec __attribute__((vector_size(PB_VB)));
typedef float s_mem __attribute__((vector_size(PB_VB), aligned(4), may_alias));
typedef int32_t s_ivec __attribute__((vector_size(PB_VB)));
typedef double d_vec __attribute__((vector_size(PB_VB)));
typedef double d_mem __attribute__((vector_size(PB_VB), aligned(8), may_alias));
typedef int64_t d_ivec __attribute__((vector_size(PB_VB)));

#define T float
#define V s_vec
#define N_(name) JOIN_(s_, name)
#include "gemm.h"
#undef T
#undef V
#undef N_
#define T double
#define V d_vec
#define N_(name) JOIN_(d_, name)
#include "gemm.h"
#undef T
#undef V
#undef N_

// ---- rows added into a table: gradients of embedding and index_add ----------------------------

// Each chunk owns a range of columns, so rows are added in the order of i on every thread.
#define SCATTER_(name, T)                                                                          \
  typedef struct {                                                                                 \
    T *out;                                                                                        \
    int64_t rows, width;                                                                           \
    const int64_t *index;                                                                          \
    const T *src;                                                                                  \
    int64_t n, skip, step;                                                                         \
  } name##_job;                                                                                    \
  static void name##_run(void **p, int64_t begin, int64_t end) {                                   \
    name##_job *j = (name##_job *)p;                                                               \
    for (int64_t c = begin; c < end; c++) {                                                        \
      int64_t lo = c * j->step, hi = lo + j->step < j->width ? lo + j->step : j->width;            \
      for (int64_t i = 0; i < j->n; i++) {                                                         \
        int64_t r = j->index[i];                                                                   \
        if (r == j->skip) continue;                                                                \
        if (r < 0) r += j->rows;                                                                   \
        T *restrict o = j->out + r * j->width;                                                     \
        const T *restrict s = j->src + i * j->width;                                               \
        for (int64_t k = lo; k < hi; k++) o[k] += s[k];                                            \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  int64_t name(T *out, int64_t rows, int64_t width, const int64_t *index, const T *src,            \
               int64_t n, int64_t skip, int wrap) {                                                \
    for (int64_t i = 0; i < n; i++)                                                                \
      if (index[i] < (wrap ? -rows : 0) || index[i] >= rows) return i + 1;                         \
    name##_job j = {out, rows, width, index, src, n, skip, 64};                                    \
    if (n * width < 16384) j.step = width > 0 ? width : 1;                                         \
    pb_parallel(name##_run, (void **)&j, (width + j.step - 1) / j.step, 1);                        \
    return 0;                                                                                      \
  }
SCATTER_(pb_scatter_rows_f, float)
SCATTER_(pb_scatter_rows_d, double)
