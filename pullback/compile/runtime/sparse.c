// Products of sparse matrices, given by the rows, columns and values of their entries, with dense ones:
// entries.h, for float and double; and steps of optimizers on the rows of a table.  A library of its own:
// `compile/sparse_loops.py` loads it, for eager execution and for generated code.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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
#define MASKS (FLOATS == 16 && !defined(__clang__))  // parts of vectors are loaded like whole ones
#define MOST 8    // vectors in registers
#define AHEAD 16  // entries
#define PB_L FLOATS
#include "vec.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// threads, once the runtime has given them
static const pb_support *support;
void pb_sparse_bind(const pb_support *given) { support = given; }

typedef struct {
  const pb_entries *job;
  int64_t chunks;
} shared;

// Have threads share some work, if there is enough of it.
static void share(const pb_entries *j, pb_body body) {
  int64_t threads = support ? support->threads() : 1;
  int64_t work = j->count * (j->width + 16);  // to find a row takes time, too
  threads = least(threads, work / (j->alone + 1));
  shared s = {j, threads > 1 ? threads * 8 : 1};
  if (threads > 1) support->parallel(body, (void **)&s, s.chunks, 1);
  else body((void **)&s, 0, 1);
}

typedef struct {
  shared shared;
  int bad, turns;
} looked;
static void look_body(void **p, int64_t begin, int64_t end) {
  looked *l = (looked *)p;
  const pb_entries *j = l->shared.job;
  const int64_t *rows = j->rows, *cols = j->cols;
  int64_t first = j->count * begin / l->shared.chunks, last = j->count * end / l->shared.chunks;
  int bad = 0, turns = 0;
  for (int64_t e = first; e < last; e++)
    bad |= ((uint64_t)rows[e] >= (uint64_t)j->size) | ((uint64_t)cols[e] >= (uint64_t)j->depth);
  for (int64_t e = first + !first; e < last; e++) turns |= rows[e] < rows[e - 1];
  if (bad) __atomic_store_n(&l->bad, 1, __ATOMIC_RELAXED);
  if (turns) __atomic_store_n(&l->turns, 1, __ATOMIC_RELAXED);
}

// Are the rows in order?  And is an entry outside?
static int look(const pb_entries *j, int64_t *outside) {
  looked l = {{j, 1}, 0, 0};
  int64_t threads = support ? support->threads() : 1;
  l.shared.chunks = least(threads, j->count / (j->alone / 8 + 1));
  if (l.shared.chunks > 1) support->parallel(look_body, (void **)&l, l.shared.chunks, 1);
  else l.shared.chunks = 1, look_body((void **)&l, 0, 1);
  for (int64_t e = 0; l.bad && !*outside && e < j->count; e++) {
    if ((uint64_t)j->rows[e] >= (uint64_t)j->size) *outside = e + 1;
    else if ((uint64_t)j->cols[e] >= (uint64_t)j->depth) *outside = -e - 1;
  }
  return !l.turns;
}

// Where the entries of rows begin; `order`, if it is not null, becomes the entries in the order of their
// rows, those of a row as they are.  Without it they are in order.
void pb_order(const int64_t *rows, int64_t count, int64_t size, int64_t *starts, int64_t *order) {
  memset(starts, 0, (size + 1) * sizeof(int64_t));
  if (!order) {
    for (int64_t e = 0; e < count; e++) starts[rows[e] + 1] = e + 1;
    for (int64_t r = 0; r < size; r++) starts[r + 1] = starts[r + 1] ? starts[r + 1] : starts[r];
    return;
  }
  for (int64_t e = 0; e < count; e++) starts[rows[e]]++;
  for (int64_t r = 0, sum = 0; r <= size; r++) {
    int64_t here = starts[r];
    starts[r] = sum, sum += here;
  }
  for (int64_t e = 0; e < count; e++) order[starts[rows[e]]++] = e;
  for (int64_t r = size; r > 0; r--) starts[r] = starts[r - 1];
  starts[0] = 0;
}

// Are entries inside of a matrix, and their rows in order?  0: they are; 1: not in order; 2: outside.
int pb_look(const pb_entries *j) {
  int64_t outside = 0;
  int ordered = look(j, &outside);
  return outside ? 2 : !ordered;
}

#define REAL float
#define WIDE FLOATS
#define VEC VF
#define OF(name) name##_f32
#define LOAD FN(load_f)
#define STORE FN(store_f)
#define LOADN FN(loadn_f)
#define STOREN FN(storen_f)
#define SUM FN(hsum_f)
#define INTS VI
#define LANES FN(lanes)()
#include "entries.h"
#undef REAL
#undef WIDE
#undef VEC
#undef OF
#undef LOAD
#undef STORE
#undef LOADN
#undef STOREN
#undef SUM
#undef INTS
#undef LANES

#if DOUBLES != FLOATS
#undef PB_L
#define PB_L DOUBLES
#include "vec.h"
#endif
#define REAL double
#define WIDE DOUBLES
#define VEC VD
#define OF(name) name##_f64
#define LOAD FN(load_d)
#define STORE FN(store_d)
#define LOADN FN(loadn_d)
#define STOREN FN(storen_d)
#define SUM FN(hsum_d)
#define INTS VL
#define LANES FN(lanes_l)()
#include "entries.h"

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

ROWS_ADAM(f32, float, __builtin_sqrtf)
ROWS_ADAM(f64, double, __builtin_sqrt)
