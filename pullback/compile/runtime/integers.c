// Products of matrices of 8-bit integers, and linear layers whose input is rounded to such.
// A library of its own, for eager execution: `compile/integer_loops.py` loads it.  All matrices are
// row-major; the integers of the left one are in rows of `stride` bytes, a multiple of 64, that are
// zero behind `width`.  Each function does a part of the work: threads share it.
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include <immintrin.h>
#define VNNI 1
#endif

// The least and the largest of some numbers, and 0; NaN are passed over.
void pb_int_extremes(const float *x, int64_t count, float *out) {
  float low[16] = {0}, high[16] = {0};
  int64_t i = 0;
#ifdef VNNI
  __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
  for (; i + 32 <= count; i += 32) {  // the second of two where the first is NaN
    __m512 u = _mm512_loadu_ps(x + i), v = _mm512_loadu_ps(x + i + 16);
    a = _mm512_min_ps(u, a), b = _mm512_max_ps(u, b);
    c = _mm512_min_ps(v, c), d = _mm512_max_ps(v, d);
  }
  _mm512_storeu_ps(low, _mm512_min_ps(a, c));
  _mm512_storeu_ps(high, _mm512_max_ps(b, d));
#endif
  for (; i + 16 <= count; i += 16)
    for (int k = 0; k < 16; k++) {
      low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
      high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
    }
  for (; i < count; i++) {
    low[0] = x[i] < low[0] ? x[i] : low[0];
    high[0] = x[i] > high[0] ? x[i] : high[0];
  }
  out[0] = low[0], out[1] = high[0];
  for (int k = 1; k < 16; k++) {
    out[0] = low[k] < out[0] ? low[k] : out[0];
    out[1] = high[k] > out[1] ? high[k] : out[1];
  }
}

// Numbers in units of 1 / `inverse` from `zero` on, rounded to even, between 0 and 255; NaN is 255.
void pb_int_round(const float *x, uint8_t *out, int64_t rows, int64_t width, int64_t stride,
                  float inverse, float zero) {
  const float magic = 12582912.0f;  // 1.5 * 2**23: adding it rounds to an integer
  for (int64_t r = 0; r < rows; r++) {
    const float *from = x + r * width;
    uint8_t *to = out + r * stride;
    for (int64_t k = 0; k < width; k++) {
      float level = from[k] * inverse + zero;
      level = level < 255.0f ? level : 255.0f;
      level = level > 0.0f ? level : 0.0f;
      union { float f; int32_t i; } bits = {level + magic};
      to[k] = (uint8_t)(bits.i & 255);
    }
    memset(to + width, 0, stride - width);
  }
}

// The sums of rows of bytes.
void pb_int_sums(const uint8_t *a, int32_t *out, int64_t rows, int64_t width, int64_t stride) {
  for (int64_t r = 0; r < rows; r++) {
    int32_t total = 0;
    for (int64_t k = 0; k < width; k++) total += a[r * stride + k];
    out[r] = total;
  }
}

#ifdef VNNI
// The sums of four vectors in every part of 128 bits.
static inline __m512i sums_of_4(__m512i a, __m512i b, __m512i c, __m512i d) {
  __m512i x = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  __m512i y = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
}

static inline __attribute__((always_inline)) void clear(__m512i s[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) s[i] = _mm512_setzero_si512();
}

// The sums of sixteen vectors.
static inline __m512i sums_of_16(const __m512i s[16]) {
  __m512i a = sums_of_4(s[0], s[1], s[2], s[3]), b = sums_of_4(s[4], s[5], s[6], s[7]);
  __m512i c = sums_of_4(s[8], s[9], s[10], s[11]), d = sums_of_4(s[12], s[13], s[14], s[15]);
  __m512i x = _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  __m512i y = _mm512_add_epi32(_mm512_shuffle_i32x4(c, d, 0x88), _mm512_shuffle_i32x4(c, d, 0xdd));
  return _mm512_add_epi32(_mm512_shuffle_i32x4(x, y, 0x88), _mm512_shuffle_i32x4(x, y, 0xdd));
}
#endif

// The dot products of four rows of a and four of b; `rest` is what the last vector has of b.
#ifdef VNNI
static inline void four_by_four(const uint8_t *x[4], const int8_t *y[4], int64_t width,
                                int32_t out[16]) {
  __m512i s[16];
  clear(s);
  for (int64_t k = 0; k < width; k += 64) {
    __mmask64 there = width - k < 64 ? ((__mmask64)1 << (width - k)) - 1 : ~(__mmask64)0;
    __m512i v0 = _mm512_maskz_loadu_epi8(there, y[0] + k);
    __m512i v1 = _mm512_maskz_loadu_epi8(there, y[1] + k);
    __m512i v2 = _mm512_maskz_loadu_epi8(there, y[2] + k);
    __m512i v3 = _mm512_maskz_loadu_epi8(there, y[3] + k);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      __m512i u = _mm512_loadu_si512(x[i] + k);
      s[4 * i] = _mm512_dpbusd_epi32(s[4 * i], u, v0);
      s[4 * i + 1] = _mm512_dpbusd_epi32(s[4 * i + 1], u, v1);
      s[4 * i + 2] = _mm512_dpbusd_epi32(s[4 * i + 2], u, v2);
      s[4 * i + 3] = _mm512_dpbusd_epi32(s[4 * i + 3], u, v3);
    }
  }
  _mm512_storeu_si512(out, sums_of_16(s));
}

// The same for one row of a and sixteen of b.
static inline void one_by_sixteen(const uint8_t *x, const int8_t *y, int64_t width,
                                  int32_t out[16]) {
  __m512i s[16];
  clear(s);
  for (int64_t k = 0; k < width; k += 64) {
    __mmask64 there = width - k < 64 ? ((__mmask64)1 << (width - k)) - 1 : ~(__mmask64)0;
    __m512i u = _mm512_loadu_si512(x + k);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
      s[i] = _mm512_dpbusd_epi32(s[i], u, _mm512_maskz_loadu_epi8(there, y + i * width + k));
  }
  _mm512_storeu_si512(out, sums_of_16(s));
}
#endif

// The dot products of `high` rows of a, at most 4, and `wide` rows of b, at most 16, where one of
// them is 4 or less: out[4 * i + j], or out[j] if there is one row of a.
static void tile(const uint8_t *a, int64_t stride, const int8_t *b, int64_t width, int high,
                 int wide, int32_t out[16]) {
#ifdef VNNI
  if (high == 1 && wide == 16) {
    one_by_sixteen(a, b, width, out);
    return;
  }
  if (wide <= 4) {
    const uint8_t *x[4];  // rows that are not there are the last one again
    const int8_t *y[4];
    for (int i = 0; i < 4; i++) {
      x[i] = a + (i < high ? i : high - 1) * stride;
      y[i] = b + (i < wide ? i : wide - 1) * width;
    }
    four_by_four(x, y, width, out);
    return;
  }
#endif
  for (int j = 0; j < wide; j++) {
    const int8_t *y = b + j * width;
    for (int i = 0; i < high; i++) {
      const uint8_t *x = a + i * stride;
      int32_t total = 0;
      for (int64_t k = 0; k < width; k++) total += (int32_t)x[k] * (int32_t)y[k];
      out[4 * i + j] = total;
    }
  }
}

// The sum of a row of b.
static int32_t row_sum(const int8_t *y, int64_t width) {
  int32_t total = 0;
#ifdef VNNI
  __m512i s = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
  for (int64_t k = 0; k < width; k += 64) {
    __mmask64 there = width - k < 64 ? ((__mmask64)1 << (width - k)) - 1 : ~(__mmask64)0;
    s = _mm512_dpbusd_epi32(s, ones, _mm512_maskz_loadu_epi8(there, y + k));
  }
  total = _mm512_reduce_add_epi32(s);
#else
  for (int64_t k = 0; k < width; k++) total += y[k];
#endif
  return total;
}

// The sums of rows of b from `first` to `last`.
static void all_sums(const int8_t *b, int32_t *sums, int64_t width, int64_t first, int64_t last) {
  for (int64_t j = first; j < last; j++) sums[j] = row_sum(b + j * width, width);
}

// As many rows of a as fit beside a tile of b into the first cache, a multiple of 4.
static int64_t block_of(int64_t stride) {
  int64_t rows = 24576 / stride & ~(int64_t)3;
  return rows < 4 ? 4 : rows;
}

// out = a @ b.T - shift * sums, for rows of b from `first` to `last`; `sums` are those of the rows
// of b, and are found here.
void pb_int_products(const uint8_t *a, const int8_t *b, int32_t *out, int32_t *sums, int64_t rows,
                     int64_t width, int64_t stride, int64_t columns, int32_t shift, int64_t first,
                     int64_t last) {
  int32_t found[16];
  int64_t most = rows == 1 ? 16 : 4, block = block_of(stride);
  all_sums(b, sums, width, first, shift ? last : first);
  for (int64_t top = 0; top < rows; top += block)
    for (int64_t j = first; j < last; j += most) {
      int wide = last - j < most ? last - j : most;
      int64_t end = top + block < rows ? top + block : rows;
      for (int64_t i = top; i < end; i += 4) {
        int high = end - i < 4 ? end - i : 4;
        tile(a + i * stride, stride, b + j * width, width, high, wide, found);
        for (int p = 0; p < high; p++)
          for (int q = 0; q < wide; q++)
            out[(i + p) * columns + j + q] =
                found[4 * p + q] - (shift ? shift * sums[j + q] : 0);
      }
    }
}

// A linear layer: the integers of the input stand for step * (a - zero), those of the weight for
// scale * (b - offset), where there is one scale and offset for each row of b, or for all.
void pb_int_linear(const uint8_t *a, const int32_t *row_sums, const int8_t *b, const float *scale,
                   const int32_t *offset, int64_t each, const float *bias, float *out,
                   int32_t *sums, int64_t rows, int64_t width, int64_t stride, int64_t columns,
                   float step, int32_t zero, int64_t first, int64_t last) {
  int32_t found[16];
  int64_t most = rows == 1 ? 16 : 4, block = block_of(stride);
  all_sums(b, sums, width, first, last);
  for (int64_t top = 0; top < rows; top += block)
    for (int64_t j = first; j < last; j += most) {
      int wide = last - j < most ? last - j : most;
      int64_t end = top + block < rows ? top + block : rows;
      float by[16], more[16];
      int32_t minus[16], zeros[16];
      for (int q = 0; q < wide; q++) {
        int64_t c = each ? j + q : 0;
        by[q] = step * scale[c], more[q] = bias ? bias[j + q] : 0;
        minus[q] = zero * sums[j + q], zeros[q] = offset[c];
      }
      for (int64_t i = top; i < end; i += 4) {
        int high = end - i < 4 ? end - i : 4;
        tile(a + i * stride, stride, b + j * width, width, high, wide, found);
        for (int p = 0; p < high; p++) {
          int32_t extra = row_sums[i + p] - (int32_t)width * zero;
          float *to = out + (i + p) * columns + j;
          if (wide == 4) {
            for (int q = 0; q < 4; q++)
              to[q] = fmaf((float)(found[4 * p + q] - minus[q] - extra * zeros[q]), by[q], more[q]);
          } else {
            for (int q = 0; q < wide; q++)
              to[q] = fmaf((float)(found[4 * p + q] - minus[q] - extra * zeros[q]), by[q], more[q]);
          }
        }
      }
    }
}
