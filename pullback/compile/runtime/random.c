// Arrays of random numbers: the Mersenne twister, uniforms, normals, zeros and ones, orders, with the
// arithmetic of array/random.py step by step (fused where that is fused, rounded where that rounds),
// so that the numbers are the same.  Compile with -ffp-contract=off.  A library of its own.
#include <math.h>
#include <stdint.h>
#include <string.h>

#define N 624
#define M 397

typedef struct {  // as NumPy lays out its twister
  uint32_t key[N];
  int pos;
} twister;

static inline uint32_t mix(uint32_t high, uint32_t low) {
  uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
  return (y >> 1) ^ (-(low & 1u) & 0x9908b0dfu);
}

static void twist(twister *t) {
  uint32_t *k = t->key;
  uint32_t first[N - M];
  for (int i = 0; i < N - M; i++) first[i] = k[i + M] ^ mix(k[i], k[i + 1]);
  memcpy(k, first, sizeof first);
  // the rest depends on what was made N - M words before: pieces of that length are independent
  for (int from = N - M; from < N - 1; from += N - M) {
    int to = from + N - M < N - 1 ? from + N - M : N - 1;
    uint32_t piece[N - M];
    for (int i = 0; i < to - from; i++)
      piece[i] = k[from + i + M - N] ^ mix(k[from + i], k[from + i + 1]);
    memcpy(k + from, piece, (to - from) * sizeof *k);
  }
  k[N - 1] = k[M - 1] ^ mix(k[N - 1], k[0]);
  t->pos = 0;
}

// up to `want` words; returns how many
static int words(twister *t, uint32_t *out, int64_t want) {
  if (t->pos >= N) twist(t);
  int count = want < N - t->pos ? (int)want : N - t->pos;
  const uint32_t *k = t->key + t->pos;
  for (int i = 0; i < count; i++) {
    uint32_t y = k[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[i] = y ^ (y >> 18);
  }
  t->pos += count;
  return count;
}

static inline float unit(uint32_t y) { return (float)(int32_t)(y & 0xffffff) * 0x1p-24f; }

void pb_random_words(twister *t, uint64_t *out, int64_t n) {
  uint32_t y[N];
  while (n > 0) {
    int count = words(t, y, n);
    for (int i = 0; i < count; i++) out[i] = y[i];
    out += count, n -= count;
  }
}

// uniforms in [0, 1), scaled by a fused multiply-add unless factor is 1 and offset 0
void pb_random_uniform(twister *t, float *out, int64_t n, float factor, float offset) {
  uint32_t y[N];
  int plain = factor == 1.0f && offset == 0.0f;
  while (n > 0) {
    int count = words(t, y, n);
    if (plain)
      for (int i = 0; i < count; i++) out[i] = unit(y[i]);
    else
      for (int i = 0; i < count; i++) out[i] = fmaf(unit(y[i]), factor, offset);
    out += count, n -= count;
  }
}

// ones where 53 bits, the high half drawn first, lie below the limit, else zeros
#define CHANCES(name, type)                                                          \
  void name(twister *t, type *out, int64_t n, int64_t limit) {                       \
    uint32_t y[N + 1];                                                               \
    int kept = 0;                                                                    \
    while (n > 0) {                                                                  \
      int have = kept + words(t, y + kept, 2 * n - kept);                            \
      int pairs = have / 2;                                                          \
      for (int i = 0; i < pairs; i++) {                                              \
        int64_t bits = (int64_t)(y[2 * i] & 0x1fffffu) << 32 | y[2 * i + 1];         \
        out[i] = bits < limit;                                                       \
      }                                                                              \
      kept = have & 1;                                                               \
      if (kept) y[0] = y[have - 1]; /* the high half of the next pair */             \
      out += pairs, n -= pairs;                                                      \
    }                                                                                \
  }
CHANCES(pb_random_chances, float)
CHANCES(pb_random_chances_bytes, uint8_t)

// 0, 1, 2... in random order: each changes places with itself or a later one
void pb_random_order(twister *t, int64_t *out, int64_t n) {
  uint32_t y[N];
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = 0; i < n - 1;) {
    int count = words(t, y, n - 1 - i);
    for (int k = 0; k < count; k++, i++) {
      int64_t j = i + y[k] % (uint32_t)(n - i);
      int64_t kept = out[i];
      out[i] = out[j], out[j] = kept;
    }
  }
}

static inline float from_bits(int32_t i) { float x; memcpy(&x, &i, 4); return x; }
static inline int32_t bits(float x) { int32_t i; memcpy(&i, &x, 4); return i; }

// logarithm of a number in (0, 1]
static inline float logarithm(float x) {
  int32_t b = bits(x) - 0x3F3504F3;
  float e = (float)(b >> 23);
  float m = from_bits((b & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
  float square = m * m;
  float y = 7.0376836292e-2f;
  y = fmaf(y, m, -1.1514610310e-1f);
  y = fmaf(y, m, 1.1676998740e-1f);
  y = fmaf(y, m, -1.2420140846e-1f);
  y = fmaf(y, m, 1.4249322787e-1f);
  y = fmaf(y, m, -1.6668057665e-1f);
  y = fmaf(y, m, 2.0000714765e-1f);
  y = fmaf(y, m, -2.4999993993e-1f);
  y = fmaf(y, m, 3.3333331174e-1f);
  y = y * m;
  y = fmaf(y, square, e * -2.12194440e-4f);
  y = y - 0.5f * square;
  y = y + m;
  return y + e * 0.693359375f;
}

#define PI_4 ((double)0.78515625f + (double)2.4187564849853515625e-4f + (double)3.77489497744594108e-8f)

// blocks of 16: eight radii and eight angles become sixteen normals, in place
static void polar(float *z, int64_t n, float factor, float offset) {
  int plain = factor == 1.0f && offset == 0.0f;
  for (float *end = z + n; z < end; z += 16) {
    float cosines[8], sines[8];
    for (int i = 0; i < 8; i++) {
      float radius = sqrtf(-2.0f * logarithm(1.0f - z[i]));
      float x = 6.283185307179586f * z[8 + i];
      int32_t octant = ((int32_t)(x * 1.2732395447351628f) + 1) & ~1;
      x = (float)((double)x - (double)octant * PI_4);
      float square = x * x;
      float c = 2.443315711809948e-5f;
      c = fmaf(c, square, -1.388731625493765e-3f);
      c = fmaf(c, square, 4.166664568298827e-2f);
      c = c * square;
      c = fmaf(c, square, -0.5f * square) + 1.0f;
      float s = -1.9515295891e-4f;
      s = fmaf(s, square, 8.3321608736e-3f);
      s = fmaf(s, square, -1.6666654611e-1f);
      s = s * square;
      s = fmaf(s, x, x);
      float sine = octant & 2 ? c : s, cosine = octant & 2 ? s : c;
      sine = from_bits(bits(sine) ^ ((octant & 4) << 29));
      cosine = from_bits(bits(cosine) ^ (((octant + 2) & 4) << 29));
      cosines[i] = radius * cosine;
      sines[i] = radius * sine;
    }
    for (int i = 0; i < 8; i++) {
      z[i] = plain ? cosines[i] : fmaf(cosines[i], factor, offset);
      z[8 + i] = plain ? sines[i] : fmaf(sines[i], factor, offset);
    }
  }
}

// normals; n is at least 16, and a ragged end is a block of its own laid over the last 16
void pb_random_normal(twister *t, float *out, int64_t n, float factor, float offset) {
  enum { PIECE = 4096 };
  int64_t whole = n - n % 16;
  for (int64_t from = 0; from < whole; from += PIECE) {
    int64_t count = whole - from < PIECE ? whole - from : PIECE;
    pb_random_uniform(t, out + from, count, 1.0f, 0.0f);
    polar(out + from, count, factor, offset);
  }
  if (n != whole) {
    float last[16];
    pb_random_uniform(t, last, n - whole, 1.0f, 0.0f);  // drawn, but replaced by fresh ones
    pb_random_uniform(t, last, 16, 1.0f, 0.0f);
    polar(last, 16, factor, offset);
    memcpy(out + n - 16, last, sizeof last);
  }
}
