// Vectors of PB_L lanes on the compilers' vector extensions: types, loads, stores, selects, sums.
// Included once per lane count (PB_L); every name ends in that count.  `vf` holds float, `vd`
// double, `vi` int32, `vl` int64; a bool in a register is a `vi` of 0 and -1.  Read vmath.h next.
#ifndef PB_CAT
#include <stdint.h>
#define PB_CAT_(a, b) a##b
#define PB_CAT(a, b) PB_CAT_(a, b)
#define FN(name) PB_CAT(name, PB_L)
#define VF FN(vf)
#define VD FN(vd)
#define VI FN(vi)
#define VL FN(vl)
#define VB FN(vb)
#define INLINE static inline __attribute__((always_inline, unused))
#include "pb.h"
INLINE int64_t bounded1(int64_t i, int64_t size, int wrap, pb_status *status, int64_t code) {
  int64_t given = i;
  if (wrap && i < 0) i += size;
  if ((uint64_t)i < (uint64_t)size) return i;
  pb_bad_index(status, code, given);
  return 0;
}
// What the processor makes of a number, one that does not fit included, as it does of vectors and NumPy
// of its elements; a cast of such a number is undefined.
#define PB_WHOLE(name, T, I)                                                                       \
  INLINE I name(T x) {                                                                             \
    typedef T from __attribute__((vector_size(sizeof(T))));                                        \
    typedef I to __attribute__((vector_size(sizeof(I))));                                          \
    return __builtin_convertvector((from){x}, to)[0];                                              \
  }
PB_WHOLE(whole_fi, float, int32_t)
PB_WHOLE(whole_fl, float, int64_t)
PB_WHOLE(whole_di, double, int32_t)
PB_WHOLE(whole_dl, double, int64_t)
// after streaming stores, before another thread reads them
INLINE void pb_fence(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}
// a number that is in a register as it stands: never part of a fused multiplication and addition
#if defined(__AVX512F__)
#define PB_ROUNDED(x) __asm__("" : "+v"(x))
#elif defined(__x86_64__)
#define PB_ROUNDED(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define PB_ROUNDED(x) __asm__("" : "+w"(x))
#else
#define PB_ROUNDED(x) __asm__("" : "+m"(x))
#endif
#define PB_INF __builtin_inff()
#define PB_NAN __builtin_nanf("")
#endif

typedef float VF __attribute__((vector_size(4 * PB_L)));
typedef double VD __attribute__((vector_size(8 * PB_L)));
typedef int32_t VI __attribute__((vector_size(4 * PB_L)));
typedef int64_t VL __attribute__((vector_size(8 * PB_L)));
typedef uint8_t VB __attribute__((vector_size(PB_L)));
// the same, for memory of any alignment and any other type
typedef float FN(mf) __attribute__((vector_size(4 * PB_L), aligned(4), may_alias));
typedef double FN(md) __attribute__((vector_size(8 * PB_L), aligned(8), may_alias));
typedef int32_t FN(mi) __attribute__((vector_size(4 * PB_L), aligned(4), may_alias));
typedef int64_t FN(ml) __attribute__((vector_size(8 * PB_L), aligned(8), may_alias));
typedef uint8_t FN(mb) __attribute__((vector_size(PB_L), aligned(1), may_alias));

#define PB_VEC(V, T, t, M)                                                                         \
  INLINE V FN(load_##t)(const T *p) { return *(const FN(M) *)p; }                                  \
  INLINE void FN(store_##t)(T *p, V v) { *(FN(M) *)p = v; }                                        \
  INLINE V FN(splat_##t)(T x) { return x - (V){}; }                                                \
  INLINE V FN(strided_##t)(const T *p, int64_t s, int n) {                                         \
    V v = {};                                                                                      \
    _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) v[k] = p[k * s];                          \
    return v;                                                                                      \
  }                                                                                                \
  INLINE void FN(spread_##t)(T *p, int64_t s, V v, int n) {                                        \
    _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) p[k * s] = v[k];                          \
  }                                                                                                \
  INLINE V FN(gather_##t)(const T *p, VL at, int n) {                                              \
    V v = {};                                                                                      \
    _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) v[k] = p[at[k]];                          \
    return v;                                                                                      \
  }
PB_VEC(VF, float, f, mf)
PB_VEC(VD, double, d, md)
PB_VEC(VI, int32_t, i, mi)
PB_VEC(VL, int64_t, l, ml)
#undef PB_VEC

// the first n lanes; the others read as zero and are not written.  n is a constant where the size is
#define PB_PART(V, T, t)                                                                           \
  INLINE V FN(loadn_##t)(const T *p, int n) {                                                      \
    V v = {};                                                                                      \
    __builtin_memcpy(&v, p, n * sizeof(T));                                                        \
    return v;                                                                                      \
  }                                                                                                \
  INLINE void FN(storen_##t)(T *p, V v, int n) { __builtin_memcpy(p, &v, n * sizeof(T)); }
#define PB_MASKED(V, T, t, p)                                                                      \
  INLINE V FN(loadn_##t)(const T *from, int n) {                                                   \
    return (V)__builtin_ia32_loadu##p##512_mask(from, (V){}, (1u << n) - 1);                       \
  }                                                                                                \
  INLINE void FN(storen_##t)(T *to, V v, int n) {                                                  \
    __builtin_ia32_storeu##p##512_mask(to, v, (1u << n) - 1);                                      \
  }
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 16
PB_MASKED(VF, float, f, ps)
#else
PB_PART(VF, float, f)
#endif
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 8
PB_MASKED(VD, double, d, pd)
#else
PB_PART(VD, double, d)
#endif
PB_PART(VI, int32_t, i)
PB_PART(VL, int64_t, l)
#undef PB_PART
#undef PB_MASKED

// streaming stores: past the caches, for outputs that are not read again; p is aligned
INLINE void FN(stream_f)(float *p, VF v) {
#if defined(__clang__)
  __builtin_nontemporal_store(v, (VF *)p);
#elif defined(__AVX512F__) && PB_L == 16
  __builtin_ia32_movntps512(p, v);
#elif defined(__AVX__) && PB_L == 8
  __builtin_ia32_movntps256(p, v);
#else
  *(FN(mf) *)p = v;
#endif
}

INLINE VI FN(load_b)(const uint8_t *p) {
  return __builtin_convertvector(*(const FN(mb) *)p, VI) != 0;
}
INLINE VI FN(loadn_b)(const uint8_t *p, int n) {
  VB v = {};
  __builtin_memcpy(&v, p, n);
  return __builtin_convertvector(v, VI) != 0;
}
INLINE void FN(store_b)(uint8_t *p, VI m) { *(FN(mb) *)p = __builtin_convertvector(m & 1, VB); }
INLINE void FN(storen_b)(uint8_t *p, VI m, int n) {
  VB v = __builtin_convertvector(m & 1, VB);
  __builtin_memcpy(p, &v, n);
}
INLINE VI FN(load_u)(const uint8_t *p) { return __builtin_convertvector(*(const FN(mb) *)p, VI); }
INLINE VI FN(loadn_u)(const uint8_t *p, int n) {
  VB v = {};
  __builtin_memcpy(&v, p, n);
  return __builtin_convertvector(v, VI);
}
INLINE void FN(store_u)(uint8_t *p, VI v) { *(FN(mb) *)p = __builtin_convertvector(v, VB); }
INLINE void FN(storen_u)(uint8_t *p, VI x, int n) {
  VB v = __builtin_convertvector(x, VB);
  __builtin_memcpy(p, &v, n);
}
#define PB_BYTES(t, LOAD, STORE)                                                                   \
  INLINE VI FN(strided_##t)(const uint8_t *p, int64_t s, int n) {                                  \
    VI v = {};                                                                                     \
    _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) v[k] = LOAD(p[k * s]);                    \
    return v;                                                                                      \
  }                                                                                                \
  INLINE void FN(spread_##t)(uint8_t *p, int64_t s, VI v, int n) {                                 \
    _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) p[k * s] = STORE(v[k]);                   \
  }                                                                                                \
  INLINE VI FN(gather_##t)(const uint8_t *p, VL at, int n) {                                       \
    VI v = {};                                                                                     \
    _Pragma("GCC unroll 16") for (int k = 0; k < n; k++) v[k] = LOAD(p[at[k]]);                    \
    return v;                                                                                      \
  }
#define PB_TRUTH(x) -(x != 0)
#define PB_PLAIN(x) (x)
PB_BYTES(b, PB_TRUTH, -PB_TRUTH)
PB_BYTES(u, PB_PLAIN, PB_PLAIN)
#undef PB_TRUTH
#undef PB_PLAIN
#undef PB_BYTES
INLINE VI FN(splat_b)(int x) { return -(x != 0) - (VI){}; }
INLINE VI FN(splat_u)(int x) { return x - (VI){}; }

// m ? a : b; compilers make one blend of it
INLINE VF FN(sel_f)(VI m, VF a, VF b) { return (VF)((m & (VI)a) | (~m & (VI)b)); }
INLINE VI FN(sel_i)(VI m, VI a, VI b) { return (m & a) | (~m & b); }
INLINE VD FN(sel_dl)(VL m, VD a, VD b) { return (VD)((m & (VL)a) | (~m & (VL)b)); }
INLINE VD FN(sel_d)(VI m, VD a, VD b) { return FN(sel_dl)(__builtin_convertvector(m, VL), a, b); }
INLINE VL FN(sel_l)(VI m, VL a, VL b) {
  VL w = __builtin_convertvector(m, VL);
  return (w & a) | (~w & b);
}
// a mask of 64-bit lanes as a bool
INLINE VI FN(narrow)(VL m) { return __builtin_convertvector(m, VI); }

INLINE VI FN(lanes)(void) {
  VI v;
  for (int k = 0; k < PB_L; k++) v[k] = k;
  return v;
}
INLINE VL FN(lanes_l)(void) { return __builtin_convertvector(FN(lanes)(), VL); }

// the larger and the smaller; a NaN on either side wins, as in PyTorch
INLINE VF FN(max_f)(VF a, VF b) { return FN(sel_f)((a > b) | (a != a), a, b); }
INLINE VF FN(min_f)(VF a, VF b) { return FN(sel_f)((a < b) | (a != a), a, b); }
INLINE VD FN(max_d)(VD a, VD b) { return FN(sel_dl)((a > b) | (a != a), a, b); }
INLINE VD FN(min_d)(VD a, VD b) { return FN(sel_dl)((a < b) | (a != a), a, b); }
INLINE VI FN(max_i)(VI a, VI b) { return FN(sel_i)(a > b, a, b); }
INLINE VI FN(min_i)(VI a, VI b) { return FN(sel_i)(a < b, a, b); }
INLINE VL FN(max_l)(VL a, VL b) { return FN(sel_l)(FN(narrow)(a > b), a, b); }
INLINE VL FN(min_l)(VL a, VL b) { return FN(sel_l)(FN(narrow)(a < b), a, b); }

// halving tree: lane k meets lane k + width, always in the same order
#if defined(__clang__)
#define PB_FOLD(V, v, OP)                                                                          \
  for (int w = PB_L / 2; w; w /= 2)                                                                \
    for (int k = 0; k < w; k++) v[k] = OP(v[k], v[k + w]);                                         \
  return v[0];
#define PB_TREE(name, V, T, W, VOP, SOP)                                                           \
  INLINE T FN(name)(V v) { PB_FOLD(V, v, SOP) }
#else
#define PB_TREE(name, V, T, W, VOP, SOP)                                                           \
  INLINE T FN(name)(V v) {                                                                         \
    _Pragma("GCC unroll 8") for (int w = PB_L / 2; w; w /= 2) {                                    \
      V other = __builtin_shuffle(v, (W(FN(lanes)(), FN(lanes_l)()) + w) & (PB_L - 1));            \
      v = VOP(v, other);                                                                           \
    }                                                                                              \
    return v[0];                                                                                   \
  }
#endif
#define PB_ADD(a, b) ((a) + (b))
#define PB_MUL(a, b) ((a) * (b))
#define PB_OR(a, b) ((a) | (b))
#define PB_AND(a, b) ((a) & (b))
#define PB_MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define PB_MIN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define PB_W4(i, l) i
#define PB_W8(i, l) l
PB_TREE(hsum_f, VF, float, PB_W4, PB_ADD, PB_ADD)
PB_TREE(hsum_d, VD, double, PB_W8, PB_ADD, PB_ADD)
PB_TREE(hsum_i, VI, int32_t, PB_W4, PB_ADD, PB_ADD)
PB_TREE(hsum_l, VL, int64_t, PB_W8, PB_ADD, PB_ADD)
PB_TREE(hprod_f, VF, float, PB_W4, PB_MUL, PB_MUL)
PB_TREE(hprod_d, VD, double, PB_W8, PB_MUL, PB_MUL)
PB_TREE(hprod_l, VL, int64_t, PB_W8, PB_MUL, PB_MUL)
PB_TREE(hmax_f, VF, float, PB_W4, FN(max_f), PB_MAX)
PB_TREE(hmin_f, VF, float, PB_W4, FN(min_f), PB_MIN)
PB_TREE(hmax_d, VD, double, PB_W8, FN(max_d), PB_MAX)
PB_TREE(hmin_d, VD, double, PB_W8, FN(min_d), PB_MIN)
PB_TREE(hmax_i, VI, int32_t, PB_W4, FN(max_i), PB_MAX)
PB_TREE(hmin_i, VI, int32_t, PB_W4, FN(min_i), PB_MIN)
PB_TREE(hmax_l, VL, int64_t, PB_W8, FN(max_l), PB_MAX)
PB_TREE(hmin_l, VL, int64_t, PB_W8, FN(min_l), PB_MIN)
PB_TREE(hor_b, VI, int32_t, PB_W4, PB_OR, PB_OR)
PB_TREE(hand_b, VI, int32_t, PB_W4, PB_AND, PB_AND)
#undef PB_TREE
#undef PB_FOLD
#undef PB_ADD
#undef PB_MUL
#undef PB_OR
#undef PB_AND
#undef PB_MAX
#undef PB_MIN
#undef PB_W4
#undef PB_W8

// indices from data: negative ones count from the end where that is allowed; one that is out of range is
// reported in the status and replaced by 0, so that nothing outside the array is touched
INLINE VL FN(bounded)(VL ix, int64_t size, int wrap, int n, pb_status *status, int64_t code) {
  for (int k = 0; k < PB_L; k++) {
    int64_t i = ix[k];
    if (wrap && i < 0) i += size;
    if ((uint64_t)i >= (uint64_t)size) {
      if (k < n) pb_bad_index(status, code, ix[k]);
      i = 0;
    }
    ix[k] = i;
  }
  return ix;
}
