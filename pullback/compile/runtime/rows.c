// Rows added into a table: gradients of embedding and index_add; and running sums.
#include <stdint.h>
#include "pb.h"

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

// Each chunk owns whole blocks [n][inner], so sums are in order on every thread.
#define SCAN_(name, T, U)                                                                          \
  typedef struct {                                                                                 \
    T *out;                                                                                        \
    const T *x;                                                                                    \
    int64_t n, inner;                                                                              \
    int product;                                                                                   \
  } name##_job;                                                                                    \
  static void name##_run(void **p, int64_t begin, int64_t end) {                                   \
    name##_job *j = (name##_job *)p;                                                               \
    int64_t inner = j->inner, size = j->n * inner;                                                 \
    for (int64_t o = begin; o < end; o++) {                                                        \
      T *restrict out = j->out + o * size;                                                         \
      const T *restrict x = j->x + o * size;                                                       \
      for (int64_t i = 0; i < inner; i++) out[i] = x[i];                                           \
      if (inner == 1) {                                                                            \
        U sum = (U)x[0];                                                                           \
        for (int64_t i = 1; i < size; i++) out[i] = (T)(sum = j->product ? sum * (U)x[i] : sum + (U)x[i]); \
      } else if (j->product) {                                                                     \
        for (int64_t i = inner; i < size; i++) out[i] = (T)((U)out[i - inner] * (U)x[i]);          \
      } else {                                                                                     \
        for (int64_t i = inner; i < size; i++) out[i] = (T)((U)out[i - inner] + (U)x[i]);          \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void name(T *out, const T *x, int64_t outer, int64_t n, int64_t inner, int product) {     \
    name##_job j = {out, x, n, inner, product};                                                    \
    pb_parallel(name##_run, (void **)&j, outer, 1 + 8192 / (n * inner + 1));                       \
  }
SCAN_(pb_scan_f, float, float)
SCAN_(pb_scan_d, double, double)
SCAN_(pb_scan_l, int64_t, uint64_t)  // whole numbers wrap around
