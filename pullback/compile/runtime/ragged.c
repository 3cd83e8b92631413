// Attention over parts of different lengths, one behind the other, and its gradients: ragged.h, for
// float and double.  A library of its own, for eager execution: `compile/ragged_loops.py` loads it.
// A block of queries meets a block of keys at a time; the scores of these stay in the cache.
#include <math.h>
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
#define ROWS (FLOATS == 16 ? 8 : 4)  // of a tile that is in registers
#define QUERIES 32
#define KEYS 256

// All are (places of all parts, heads, width): query, key, value, output, logarithms of the sums;
// for gradients that of the output, and those of query, key and value.
typedef struct {
  void *arrays[9];
  int64_t head_steps[9], steps[9];
  const int64_t *query_offsets, *key_offsets, *order;  // the parts in the order in which they are done
  int64_t parts, heads, width, value_width, longest_key, causal;
  double scale;
} job;

enum { FRESH = 1, CAUSAL = 2, BEFORE = 4, AFTER = 8 };  // kinds of products
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t whole(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
#define AT(i, head, row) \
  ((REAL *)j->arrays[i] + (head) * j->head_steps[i] + (row) * j->steps[i])
#define STEP(i) j->steps[i]
#define TILE(vectors, fresh)                                                                        \
  OF(tile)(out + i * wide + c, wide, from, down, on, x + c, b_wide, high - low, vectors, fresh)

// The larger of two numbers, the second where one is a NaN: what processors have an instruction for.
#if defined(__AVX512F__) && !defined(__clang__)
#define HIGHER_F(x, y) __builtin_ia32_maxps512_mask(x, y, x, -1, 4)
#define HIGHER_D(x, y) __builtin_ia32_maxpd512_mask(x, y, x, -1, 4)
#elif defined(__AVX__) && !defined(__clang__)
#define HIGHER_F(x, y) __builtin_ia32_maxps256(x, y)
#define HIGHER_D(x, y) __builtin_ia32_maxpd256(x, y)
#else
#define HIGHER_F(x, y) FN(sel_f)((x) > (y), x, y)
#define HIGHER_D(x, y) FN(sel_dl)((x) > (y), x, y)
#endif

#define PB_L FLOATS
#include "vec.h"
#include "vmath.h"
#define REAL float
#define WIDE FLOATS
#define VEC VF
#define OF(name) name##_f32
#define LOAD FN(load_f)
#define STORE FN(store_f)
#define LOADN FN(loadn_f)
#define STOREN FN(storen_f)
#define SPLAT FN(splat_f)
#define HIGHER HIGHER_F
#define SUM FN(hsum_f)
#define HIGH FN(hmax_f)
#define EXP FN(exp_f)
#define EXP1 expf
#define LOG1 logf
#include "ragged.h"
#undef REAL
#undef WIDE
#undef VEC
#undef OF
#undef LOAD
#undef STORE
#undef LOADN
#undef STOREN
#undef SPLAT
#undef HIGHER
#undef SUM
#undef HIGH
#undef EXP
#undef EXP1
#undef LOG1

#if DOUBLES != FLOATS
#undef PB_L
#define PB_L DOUBLES
#include "vec.h"
#include "vmath.h"
#endif
#define REAL double
#define WIDE DOUBLES
#define VEC VD
#define OF(name) name##_f64
#define LOAD FN(load_d)
#define STORE FN(store_d)
#define LOADN FN(loadn_d)
#define STOREN FN(storen_d)
#define SPLAT FN(splat_d)
#define HIGHER HIGHER_D
#define SUM FN(hsum_d)
#define HIGH FN(hmax_d)
#define EXP FN(exp_d)
#define EXP1 exp
#define LOG1 log
#include "ragged.h"
