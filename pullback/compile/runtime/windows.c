// Maxima over windows of the last dims of an array, and their gradients.
#include <stdint.h>
#include "pb.h"

enum { PB_STRIP = 256 };  // windows of a row at a time

#define OVER_PLANES_(name, letter)                                                                  \
  static void pb_##name##_##letter(const pb_windows *w) {                                           \
    int64_t size = w->image[0] * w->image[1] * w->image[2];                                         \
    pb_parallel(name##_run_##letter, (void **)w, w->planes, 1 + 16384 / (size + 1));                \
  }

// The first of equal values wins, but the last NaN, as in a scan with `new > best or new is NaN`.
#define MAX_WINDOWS_(letter, T)                                                                     \
  __attribute__((optimize("O3"))) static void max_strip_##letter(                                   \
      const pb_windows *w, const T *plane, const int64_t *place, int64_t n, T *restrict best,       \
      int64_t *restrict where) {                                                                    \
    int32_t at[PB_STRIP];                                                                           \
    int64_t low[3], first[3];                                                                       \
    for (int i = 0; i < 3; i++) {                                                                   \
      low[i] = place[i] * w->stride[i] - w->padding[i];                                             \
      first[i] = low[i] < 0 ? (-low[i] + w->dilation[i] - 1) / w->dilation[i] : 0;                  \
    }                                                                                               \
    int64_t d0 = low[0] + first[0] * w->dilation[0], h0 = low[1] + first[1] * w->dilation[1];       \
    if (d0 >= w->image[0]) d0 = w->image[0] - 1;                                                    \
    if (h0 >= w->image[1]) h0 = w->image[1] - 1;                                                    \
    for (int64_t j = 0; j < n; j++) {                                                               \
      int64_t x = low[2] + j * w->stride[2];                                                        \
      if (x < 0) x += (-x + w->dilation[2] - 1) / w->dilation[2] * w->dilation[2];                  \
      if (x >= w->image[2]) x = w->image[2] - 1;                                                    \
      best[j] = -__builtin_inf();                                                                   \
      at[j] = (int32_t)((d0 * w->image[1] + h0) * w->image[2] + x);                                 \
    }                                                                                               \
    for (int64_t a = first[0]; a < w->kernel[0]; a++)                                               \
      for (int64_t b = first[1]; b < w->kernel[1]; b++)                                             \
        for (int64_t c = 0; c < w->kernel[2]; c++) {                                                \
          int64_t d = low[0] + a * w->dilation[0], h = low[1] + b * w->dilation[1];                 \
          if (d >= w->image[0] || h >= w->image[1]) continue;                                       \
          int64_t x = low[2] + c * w->dilation[2], s = w->stride[2];                                \
          int64_t begin = x < 0 ? (-x + s - 1) / s : 0, left = w->image[2] - x;                     \
          int64_t end = left <= 0 ? 0 : (left + s - 1) / s < n ? (left + s - 1) / s : n;            \
          int32_t row = (int32_t)((d * w->image[1] + h) * w->image[2] + x), step = (int32_t)s;      \
          const T *from = plane + row;                                                              \
          for (int32_t j = (int32_t)begin; j < (int32_t)end; j++) {                                 \
            T v = from[j * step];                                                                   \
            int better = (v > best[j]) | (v != v);                                                  \
            best[j] = better ? v : best[j];                                                         \
            at[j] = better ? row + j * step : at[j];                                                \
          }                                                                                         \
        }                                                                                           \
    for (int64_t j = 0; j < n; j++) where[j] = at[j];                                               \
  }                                                                                                 \
  static void max_windows_run_##letter(void **p, int64_t begin, int64_t end) {                      \
    const pb_windows *w = (const pb_windows *)p;                                                    \
    int64_t size = w->image[0] * w->image[1] * w->image[2];                                         \
    int64_t windows = w->counts[0] * w->counts[1] * w->counts[2];                                   \
    for (int64_t i = begin; i < end; i++) {                                                         \
      T *best = (T *)w->out + i * windows;                                                          \
      int64_t *where = w->where + i * windows;                                                      \
      for (int64_t d = 0; d < w->counts[0]; d++)                                                    \
        for (int64_t h = 0; h < w->counts[1]; h++)                                                  \
          for (int64_t x = 0; x < w->counts[2]; x += PB_STRIP) {                                    \
            int64_t n = w->counts[2] - x < PB_STRIP ? w->counts[2] - x : PB_STRIP;                  \
            int64_t place[3] = {d, h, x};                                                           \
            max_strip_##letter(w, (const T *)w->x + i * size, place, n, best, where);               \
            best += n;                                                                              \
            where += n;                                                                             \
          }                                                                                         \
    }                                                                                               \
  }                                                                                                 \
  OVER_PLANES_(max_windows, letter)                                                                 \
  static void spread_windows_run_##letter(void **p, int64_t begin, int64_t end) {                   \
    const pb_windows *w = (const pb_windows *)p;                                                    \
    int64_t size = w->image[0] * w->image[1] * w->image[2];                                         \
    int64_t windows = w->counts[0] * w->counts[1] * w->counts[2];                                   \
    __builtin_memset((T *)w->out + begin * size, 0, (size_t)((end - begin) * size) * sizeof(T));    \
    for (int64_t i = begin; i < end; i++) {                                                         \
      T *out = (T *)w->out + i * size;                                                              \
      const T *grad = (const T *)w->x + i * windows;                                                \
      const int64_t *where = w->where + i * windows;                                                \
      for (int64_t j = 0; j < windows; j++) {                                                       \
        if ((uint64_t)where[j] >= (uint64_t)size) {                                                 \
          pb_bad_index(w->status, w->check, where[j]);                                              \
          return;                                                                                   \
        }                                                                                           \
        out[where[j]] += grad[j];                                                                   \
      }                                                                                             \
    }                                                                                               \
  }                                                                                                 \
  OVER_PLANES_(spread_windows, letter)
MAX_WINDOWS_(f, float)
MAX_WINDOWS_(d, double)
