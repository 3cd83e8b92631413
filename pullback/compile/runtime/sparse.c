// Products of sparse matrices, given by the rows, columns and values of their entries, with dense ones.
// A library of its own, for eager execution: `compile/eager_libraries.py` loads it.  Whoever calls has
// looked at the rows and columns.  Each function does a part of the work: threads share it.
#include <stdint.h>

typedef float f32_vector __attribute__((vector_size(64), aligned(4)));
typedef double f64_vector __attribute__((vector_size(64), aligned(8)));

// out[rows[e]] += values[e] * dense[cols[e]], entries from `first` to `last`, columns from `left` to
// `right` of `width`.  Threads share entries where rows are in order (and begin at other rows), else
// columns.  Entries of one row that are one behind the other are added up in registers.
#define SPMM(name, real)                                                                          \
  void pb_spmm_##name(const int64_t *rows, const int64_t *cols, const real *values,               \
                      const real *dense, real *out, int64_t width, int64_t first, int64_t last,   \
                      int64_t left, int64_t right) {                                              \
    const int64_t lanes = 64 / sizeof(real);                                                      \
    for (int64_t e = first, end; e < last; e = end) {                                             \
      int64_t row = rows[e];                                                                      \
      for (end = e + 1; end < last && rows[end] == row;) end++;                                   \
      real *restrict o = out + row * width;                                                       \
      int64_t i = left;                                                                           \
      for (; i + 4 * lanes <= right; i += 4 * lanes) {                                            \
        name##_vector *to = (name##_vector *)(o + i);                                             \
        name##_vector s0 = to[0], s1 = to[1], s2 = to[2], s3 = to[3];                             \
        for (int64_t k = e; k < end; k++) {                                                       \
          const name##_vector *d = (const name##_vector *)(dense + cols[k] * width + i);          \
          real v = values[k];                                                                     \
          s0 += v * d[0], s1 += v * d[1], s2 += v * d[2], s3 += v * d[3];                         \
        }                                                                                         \
        to[0] = s0, to[1] = s1, to[2] = s2, to[3] = s3;                                           \
      }                                                                                           \
      if (i == right) continue;                                                                   \
      for (int64_t k = e; k < end; k++) {                                                         \
        const real *restrict d = dense + cols[k] * width;                                         \
        real v = values[k];                                                                       \
        for (int64_t j = i; j < right; j++) o[j] += v * d[j];                                     \
      }                                                                                           \
    }                                                                                             \
  }

// out[e] = the product of row rows[e] of x and row cols[e] of y.
#define SDDMM(name, real)                                                                         \
  void pb_sddmm_##name(const int64_t *rows, const int64_t *cols, const real *x, const real *y,    \
                       real *out, int64_t width, int64_t first, int64_t last) {                   \
    const int64_t lanes = 64 / sizeof(real);                                                      \
    for (int64_t e = first; e < last; e++) {                                                      \
      const real *a = x + rows[e] * width, *b = y + cols[e] * width;                              \
      name##_vector s0 = {0}, s1 = {0};                                                           \
      int64_t i = 0;                                                                              \
      for (; i + 2 * lanes <= width; i += 2 * lanes) {                                            \
        s0 += *(const name##_vector *)(a + i) * *(const name##_vector *)(b + i);                  \
        s1 += *(const name##_vector *)(a + i + lanes) * *(const name##_vector *)(b + i + lanes);  \
      }                                                                                           \
      real rest = 0;                                                                              \
      for (; i < width; i++) rest += a[i] * b[i];                                                 \
      s0 += s1;                                                                                   \
      real lane[64 / sizeof(real)];                                                               \
      *(name##_vector *)lane = s0;                                                                \
      for (int64_t half = lanes / 2; half; half /= 2)                                             \
        for (int64_t k = 0; k < half; k++) lane[k] += lane[k + half];                             \
      out[e] = lane[0] + rest;                                                                    \
    }                                                                                             \
  }

SPMM(f32, float)
SPMM(f64, double)
SDDMM(f32, float)
SDDMM(f64, double)
