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

// A step of Adam on the rows of a table that entries have: the gradients of one row are added up in
// their order, then its two averages and itself are written.  `numbers`: 1 - beta1, 1 - beta2, eps, the
// step's size, and the gradients' sign.  `slots` (a power of two, at least twice the entries) and
// `later` are scratch.  Returns 1, or 0 where a row is outside of the table: then nothing was written.
static inline uint64_t slot_of(int64_t row, uint64_t mask) {
  return ((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;
}
#define ROWS_ADAM(name, real, root)                                                               \
  int pb_rows_adam_##name(const int64_t *rows, const real *grads, int64_t count, int64_t width,   \
                          int64_t size, real *table, real *average, real *square,                 \
                          const double *numbers, int64_t *slots, int64_t slot_count,              \
                          int64_t *later, real *sum) {                                            \
    for (int64_t e = 0; e < count; e++)                                                           \
      if (rows[e] < 0 || rows[e] >= size) return 0;                                               \
    const uint64_t mask = (uint64_t)slot_count - 1;                                               \
    const real a = numbers[0], b = numbers[1], eps = numbers[2], step = numbers[3];               \
    const real sign = numbers[4];                                                                 \
    for (int64_t k = 0; k < slot_count; k++) slots[k] = -1;                                       \
    for (int64_t e = count - 1; e >= 0; e--) { /* so that a slot has the first of its row */       \
      uint64_t k = slot_of(rows[e], mask);                                                        \
      while (slots[k] >= 0 && rows[slots[k]] != rows[e]) k = (k + 1) & mask;                      \
      later[e] = slots[k];                                                                        \
      slots[k] = e;                                                                               \
    }                                                                                             \
    for (int64_t k = 0; k < slot_count; k++) {                                                    \
      if (slots[k] < 0) continue;                                                                 \
      const int64_t at = rows[slots[k]] * width;                                                  \
      real *restrict p = table + at, *restrict m = average + at, *restrict v = square + at;       \
      for (int64_t i = 0; i < width; i++) sum[i] = 0;                                             \
      for (int64_t e = slots[k]; e >= 0; e = later[e])                                            \
        for (int64_t i = 0; i < width; i++) sum[i] += sign * grads[e * width + i];                \
      for (int64_t i = 0; i < width; i++) {                                                       \
        real g = sum[i];                                                                          \
        m[i] += (g - m[i]) * a;                                                                   \
        v[i] += (g * g - v[i]) * b;                                                               \
        p[i] -= m[i] / (root(v[i]) + eps) * step;                                                 \
      }                                                                                           \
    }                                                                                             \
    return 1;                                                                                     \
  }

SPMM(f32, float)
SPMM(f64, double)
SDDMM(f32, float)
SDDMM(f64, double)
ROWS_ADAM(f32, float, __builtin_sqrtf)
ROWS_ADAM(f64, double, __builtin_sqrt)
