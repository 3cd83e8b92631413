// Rows added into a table: gradients of embedding and index_add; running sums; where segments begin.
#include <stdint.h>
#include <string.h>
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

// The largest (or smallest) of out[r] and the src[i] with index[i] == r; a NaN stays.  Without `own` what
// out has where there is one does not count.  Returns the first bad index + 1, or 0.
#define EXTREME_(name, T)                                                                          \
  static int64_t name(T *out, int64_t rows, const int64_t *index, const T *src, int64_t n,         \
                      int highest, int own) {                                                      \
    for (int64_t i = 0; i < n; i++)                                                                \
      if (index[i] < 0 || index[i] >= rows) return i + 1;                                          \
    T least = highest ? -__builtin_inff() : __builtin_inff();                                      \
    for (int64_t i = 0; !own && i < n; i++) out[index[i]] = least;                                 \
    for (int64_t i = 0; i < n; i++) {                                                              \
      T a = out[index[i]], b = src[i];                                                             \
      out[index[i]] = a != a || (highest ? a > b : a < b) ? a : b;                                 \
    }                                                                                              \
    return 0;                                                                                      \
  }
EXTREME_(pb_scatter_extreme_f, float)
EXTREME_(pb_scatter_extreme_d, double)

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

// What is known of indices: threads look at parts of them.
typedef struct {
  const int64_t *a, *b;
  int64_t count, size, *starts;
  int bad;
} index_job;
enum { INDEX_PART = 8192 };
static void index_range(const index_job *j, int64_t *begin, int64_t *end) {
  *begin *= INDEX_PART, *end *= INDEX_PART;
  if (*end > j->count) *end = j->count;
}
static int index_share(index_job *j, pb_body body) {
  pb_parallel(body, (void **)j, (j->count + INDEX_PART - 1) / INDEX_PART, 1);
  return !__atomic_load_n(&j->bad, __ATOMIC_RELAXED);
}
static void inside_run(void **p, int64_t begin, int64_t end) {
  index_job *j = (index_job *)p;
  index_range(j, &begin, &end);
  int64_t bad = 0;
  for (int64_t e = begin; e < end; e++) bad |= (uint64_t)j->a[e] >= (uint64_t)j->size;
  if (bad) __atomic_store_n(&j->bad, 1, __ATOMIC_RELAXED);
}
static void same_run(void **p, int64_t begin, int64_t end) {
  index_job *j = (index_job *)p;
  index_range(j, &begin, &end);
  if (memcmp(j->a + begin, j->b + begin, (end - begin) * sizeof(int64_t)))
    __atomic_store_n(&j->bad, 1, __ATOMIC_RELAXED);
}
static void ordered_run(void **p, int64_t begin, int64_t end) {
  index_job *j = (index_job *)p;
  index_range(j, &begin, &end);
  int64_t bad = 0;
  for (int64_t e = begin; e < end; e++) bad |= (uint64_t)j->a[e] >= (uint64_t)j->size;
  for (int64_t e = begin + !begin; e < end; e++) bad |= j->a[e] < j->a[e - 1];
  if (bad) __atomic_store_n(&j->bad, 1, __ATOMIC_RELAXED);
}
// the ends of the rows that begin in a part
static void starts_run(void **p, int64_t begin, int64_t end) {
  index_job *j = (index_job *)p;
  index_range(j, &begin, &end);
  const int64_t *rows = j->a;
  while (begin && begin < end && rows[begin] == rows[begin - 1]) begin++;
  if (begin == end) return;
  while (end < j->count && rows[end] == rows[end - 1]) end++;
  for (int64_t e = begin; e < end; e++) j->starts[rows[e] + 1] = e + 1;
}
static int pb_inside(const int64_t *index, int64_t count, int64_t size) {
  index_job j = {index, NULL, count, size, NULL, 0};
  return index_share(&j, inside_run);
}
static int pb_same(const int64_t *a, const int64_t *b, int64_t count) {
  index_job j = {a, b, count, 0, NULL, 0};
  return a == b || index_share(&j, same_run);
}
static int pb_starts(const int64_t *rows, int64_t count, int64_t size, int64_t *starts, int64_t longest) {
  index_job j = {rows, NULL, count, size, starts, 0};
  if (!index_share(&j, ordered_run)) return 0;
  memset(starts, 0, (size + 1) * sizeof(int64_t));
  index_share(&j, starts_run);
  int64_t most = 0;
  for (int64_t r = 0; r < size; r++) {
    int64_t end = starts[r + 1] ? starts[r + 1] : starts[r], n = end - starts[r];
    starts[r + 1] = end;
    most = n > most ? n : most;
  }
  return most <= longest;
}
