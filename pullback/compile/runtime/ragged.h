// Attention of one part and head: included once per type, see ragged.c.  REAL is the type, VEC a vector
// of WIDE of them, OF(name) this type's name of a function.  All scratch is in rows of whole vectors,
// and in whole tiles of rows; what is behind the last row or column is there, and means nothing.

// Rows of a matrix, times a number, with zeros up to `wide` columns.
static void OF(pack)(REAL *to, int64_t wide, const REAL *from, int64_t step, int64_t rows,
                     int64_t width, REAL factor) {
  for (int64_t i = 0; i < rows; i++) {
    int64_t c = 0;
    for (; c + WIDE <= width; c += WIDE)
      STORE(to + i * wide + c, factor * LOAD(from + i * step + c));
    if (c < width) STORE(to + i * wide + c, factor * LOADN(from + i * step + c, width - c));
  }
}

// The transpose of a matrix: `to` has a row of `wide` for each column, with zeros behind the last.
static void OF(turn)(REAL *to, int64_t wide, const REAL *from, int64_t step, int64_t rows,
                     int64_t width) {
  for (int64_t i = 0; i < wide; i += WIDE) {
    int64_t n = rows - i < WIDE ? rows - i : WIDE;
    if (n == WIDE)
      for (int64_t c = 0; c < width; c++)
        for (int64_t k = 0; k < WIDE; k++) to[c * wide + i + k] = from[(i + k) * step + c];
    else
      for (int64_t c = 0; c < width; c++)
        for (int64_t k = 0; k < WIDE; k++) to[c * wide + i + k] = k < n ? from[(i + k) * step + c] : 0;
  }
}

// A tile of out, ROWS by so many vectors: a[r, k] b[k, :] is added for some k, or is all there is.
INLINE void OF(tile)(REAL *out, int64_t wide, const REAL *a, int64_t down, int64_t on, const REAL *b,
                     int64_t b_wide, int64_t depth, int vectors, int fresh) {
  VEC s[ROWS][2];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
    for (int c = 0; c < vectors; c++) s[r][c] = fresh ? (VEC){} : LOAD(out + r * wide + c * WIDE);
  for (int64_t k = 0; k < depth; k++, a += on, b += b_wide) {
    VEC x[2];
#pragma GCC unroll 2
    for (int c = 0; c < vectors; c++) x[c] = LOAD(b + c * WIDE);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
      for (int c = 0; c < vectors; c++) s[r][c] += a[r * down] * x[c];
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
    for (int c = 0; c < vectors; c++) STORE(out + r * wide + c * WIDE, s[r][c]);
}

// out[i, :] += the sum of a[i * down + k * on] b[k, :] over k < depth; with FRESH that is all of it.
// The rows of a causal matrix go up to a column: with BEFORE row i has the k <= ahead + i; with
// AFTER, in its transpose, those with i <= ahead + k; with FRESH these columns of out are wanted.
static void OF(product)(REAL *out, int64_t wide, int64_t rows, int64_t columns, const REAL *a,
                        int64_t down, int64_t on, const REAL *b, int64_t b_wide, int64_t depth,
                        int kind, int64_t ahead) {
  for (int64_t i = 0; i < rows; i += ROWS) {
    int64_t low = 0, high = depth, right = columns;  // what all rows of the tile have
    if (kind & BEFORE) high = least(depth, most(0, ahead + i + 1));
    if (kind & AFTER) low = least(depth, most(0, i + ROWS - 1 - ahead));
    if (kind & CAUSAL) right = least(columns, most(0, ahead + i + ROWS));
    const REAL *from = a + i * down + low * on, *x = b + low * b_wide;
    int64_t c = 0;
    for (; c + WIDE < right; c += 2 * WIDE)
      if (kind & FRESH) TILE(2, 1);
      else TILE(2, 0);
    if (c < right) {
      if (kind & FRESH) TILE(1, 1);
      else TILE(1, 0);
    }
    if (kind & (BEFORE | AFTER))  // the corner, row by row: nothing is multiplied by what is not seen
      for (int64_t r = i; r < least(i + ROWS, rows); r++) {
        int64_t k = kind & BEFORE ? high : least(depth, most(0, r - ahead));
        int64_t end = kind & BEFORE ? least(depth, most(0, ahead + r + 1)) : low;
        for (; k < end; k++)
          for (int64_t c = 0; c < columns; c += WIDE)
            STORE(out + r * wide + c,
                  LOAD(out + r * wide + c) + a[r * down + k * on] * LOAD(b + k * b_wide + c));
      }
  }
}

// The scores of a row, of which there are n, become powers; the row is filled up to whole vectors.
INLINE VEC OF(powers)(REAL *row, int64_t n, REAL high) {
  VEC sum = {};
  for (int64_t k = n; k < whole(n, WIDE); k++) row[k] = -PB_INF;
  for (int64_t k = 0; k < n; k += WIDE) {
    VEC p = EXP(LOAD(row + k) - high);
    STORE(row + k, p);
    sum += p;
  }
  return sum;
}

// How many keys of a block a row sees.
INLINE int64_t OF(seen)(int64_t row, int64_t first, int64_t keys, int causal) {
  return causal ? least(keys, most(0, row - first + 1)) : keys;
}

// The highest score of a row, -inf where there is none; a NaN is passed over, the sum will show it.
INLINE REAL OF(peak)(const REAL *row, int64_t n) {
  VEC found = SPLAT(-PB_INF);
  int64_t k = 0;
  for (; k + WIDE <= n; k += WIDE) found = HIGHER(LOAD(row + k), found);
  REAL high = HIGH(found);
  for (; k < n; k++) high = row[k] > high ? row[k] : high;
  return high;
}

// Powers of the scores of a row beside those of keys before, whose highest score was another: what has
// been summed up is made smaller where a higher one comes.
INLINE void OF(soften)(REAL *row, int64_t n, REAL before, REAL high, REAL *total, REAL *sums,
                       int64_t wide) {
  REAL shift = high == -PB_INF ? 0 : high, more = SUM(OF(powers)(row, n, shift));
  REAL less = before == -PB_INF ? 1 : EXP1(before - shift);
  *total = *total * less + more;
  if (less != 1)
    for (int64_t c = 0; c < wide; c += WIDE) STORE(sums + c, LOAD(sums + c) * less);
}

static void OF(forward)(const job *j, int64_t part, int64_t head, REAL *scratch) {
  int64_t q0 = j->query_offsets[part], queries = j->query_offsets[part + 1] - q0;
  int64_t k0 = j->key_offsets[part], keys = j->key_offsets[part + 1] - k0;
  int64_t width = j->width, values = j->value_width, wide = whole(width, WIDE);
  int64_t value_wide = whole(values, WIDE), all = whole(keys, WIDE);
  const REAL *q = AT(0, head, q0), *k = AT(1, head, k0), *v = AT(2, head, k0);
  REAL *out = AT(3, head, q0), *logs = AT(4, head, q0);
  REAL *turned = scratch, *packed = turned + all * width, *rows = packed + all * value_wide;
  REAL *scores = rows + QUERIES * wide, *sums = scores + QUERIES * KEYS;
  REAL high[QUERIES], before[QUERIES], total[QUERIES];
  for (int64_t b = 0; b < keys; b += KEYS)
    OF(turn)(turned + b * width, least(KEYS, all - b), k + b * STEP(1), STEP(1), least(KEYS, keys - b),
             width);
  OF(pack)(packed, value_wide, v, STEP(2), keys, values, 1);
  for (int64_t a = 0; a < queries; a += QUERIES) {
    int64_t n = least(QUERIES, queries - a), last = j->causal ? least(keys, a + n) : keys;
    OF(pack)(rows, wide, q + a * STEP(0), STEP(0), n, width, j->scale);
    memset(sums, 0, whole(n, ROWS) * value_wide * sizeof(REAL));
    for (int64_t r = 0; r < n; r++) high[r] = -PB_INF, total[r] = 0;
    for (int64_t b = 0; b < last; b += KEYS) {
      int64_t m = least(KEYS, keys - b), block = least(KEYS, all - b);
      OF(product)(scores, KEYS, n, m, rows, wide, 1, turned + b * width, block, width,
                  j->causal ? FRESH | CAUSAL : FRESH, a - b);
      for (int64_t r = 0; r < n; r++) {
        int64_t some = OF(seen)(a + r, b, m, j->causal);
        before[r] = high[r];
        REAL here = OF(peak)(scores + r * KEYS, some);
        high[r] = here > before[r] ? here : before[r];
      }
      for (int64_t r = 0; r < n; r++)
        OF(soften)(scores + r * KEYS, OF(seen)(a + r, b, m, j->causal), before[r], high[r], total + r,
                   sums + r * value_wide, value_wide);
      OF(product)(sums, value_wide, n, value_wide, scores, KEYS, 1, packed + b * value_wide, value_wide,
                  m, j->causal ? BEFORE : 0, a - b);
    }
    for (int64_t r = 0; r < n; r++) {
      REAL *to = out + (a + r) * STEP(3), sum = total[r] == 0 ? 1 : total[r];
      logs[(a + r) * STEP(4)] = total[r] == 0 ? 0 : high[r] + LOG1(sum);
      int64_t c = 0;
      for (; c + WIDE <= values; c += WIDE) STORE(to + c, LOAD(sums + r * value_wide + c) / sum);
      if (c < values) STOREN(to + c, LOAD(sums + r * value_wide + c) / sum, values - c);
    }
  }
}

// dS = P * (dP - rowsum(dP * P)) for a row; the sum is that of the products of dO and O.
INLINE void OF(inner)(REAL *powers, REAL *slopes, int64_t n, REAL log, REAL mean) {
  OF(powers)(powers, n, log);
  for (int64_t k = 0; k < n; k += WIDE)
    STORE(slopes + k, LOAD(powers + k) * (LOAD(slopes + k) - mean));
}

static void OF(unpack)(REAL *to, int64_t step, const REAL *from, int64_t wide, int64_t rows,
                       int64_t width, REAL factor) {
  for (int64_t i = 0; i < rows; i++) {
    int64_t c = 0;
    for (; c + WIDE <= width; c += WIDE) STORE(to + i * step + c, factor * LOAD(from + i * wide + c));
    if (c < width) STOREN(to + i * step + c, factor * LOAD(from + i * wide + c), width - c);
  }
}

static void OF(backward)(const job *j, int64_t part, int64_t head, REAL *scratch) {
  int64_t q0 = j->query_offsets[part], queries = j->query_offsets[part + 1] - q0;
  int64_t k0 = j->key_offsets[part], keys = j->key_offsets[part + 1] - k0;
  int64_t width = j->width, values = j->value_width, wide = whole(width, WIDE);
  int64_t value_wide = whole(values, WIDE), all = whole(keys, WIDE);
  const REAL *q = AT(0, head, q0), *k = AT(1, head, k0), *v = AT(2, head, k0);
  const REAL *out = AT(3, head, q0), *logs = AT(4, head, q0), *grad = AT(5, head, q0);
  REAL *keys_turned = scratch, *values_turned = keys_turned + all * width;
  REAL *keys_packed = values_turned + all * values, *dk = keys_packed + all * wide;
  REAL *dv = dk + all * wide, *rows = dv + all * value_wide, *g = rows + QUERIES * wide;
  REAL *dq = g + QUERIES * value_wide, *powers = dq + QUERIES * wide, *slopes = powers + QUERIES * KEYS;
  REAL mean[QUERIES];
  for (int64_t b = 0; b < keys; b += KEYS) {
    int64_t m = least(KEYS, keys - b), block = least(KEYS, all - b);
    OF(turn)(keys_turned + b * width, block, k + b * STEP(1), STEP(1), m, width);
    OF(turn)(values_turned + b * values, block, v + b * STEP(2), STEP(2), m, values);
  }
  OF(pack)(keys_packed, wide, k, STEP(1), keys, width, 1);
  memset(dk, 0, all * (wide + value_wide) * sizeof(REAL));
  for (int64_t a = 0; a < queries; a += QUERIES) {
    int64_t n = least(QUERIES, queries - a), last = j->causal ? least(keys, a + n) : keys;
    OF(pack)(rows, wide, q + a * STEP(0), STEP(0), n, width, j->scale);
    OF(pack)(g, value_wide, grad + a * STEP(5), STEP(5), n, values, 1);
    for (int64_t r = 0; r < n; r++) {
      const REAL *o = out + (a + r) * STEP(3);
      VEC sum = {};
      int64_t c = 0;
      for (; c + WIDE <= values; c += WIDE) sum += LOAD(g + r * value_wide + c) * LOAD(o + c);
      if (c < values) sum += LOAD(g + r * value_wide + c) * LOADN(o + c, values - c);
      mean[r] = SUM(sum);
    }
    memset(dq, 0, whole(n, ROWS) * wide * sizeof(REAL));
    for (int64_t b = 0; b < last; b += KEYS) {
      int64_t m = least(KEYS, keys - b), block = least(KEYS, all - b), ahead = a - b;
      int fresh = j->causal ? FRESH | CAUSAL : FRESH;
      OF(product)(powers, KEYS, n, m, rows, wide, 1, keys_turned + b * width, block, width, fresh, ahead);
      OF(product)(slopes, KEYS, n, m, g, value_wide, 1, values_turned + b * values, block, values, fresh,
                  ahead);
      for (int64_t r = 0; r < n; r++)
        OF(inner)(powers + r * KEYS, slopes + r * KEYS, OF(seen)(a + r, b, m, j->causal),
                  logs[(a + r) * STEP(4)], mean[r]);
      OF(product)(dq, wide, n, wide, slopes, KEYS, 1, keys_packed + b * wide, wide, m,
                  j->causal ? BEFORE : 0, ahead);
      OF(product)(dk + b * wide, wide, m, wide, slopes, 1, KEYS, rows, wide, n, j->causal ? AFTER : 0,
                  ahead);
      OF(product)(dv + b * value_wide, value_wide, m, value_wide, powers, 1, KEYS, g, value_wide, n,
                  j->causal ? AFTER : 0, ahead);
    }
    OF(unpack)((REAL *)AT(6, head, q0) + a * STEP(6), STEP(6), dq, wide, n, width, j->scale);
  }
  OF(unpack)(AT(7, head, k0), STEP(7), dk, wide, keys, width, 1);
  OF(unpack)(AT(8, head, k0), STEP(8), dv, value_wide, keys, values, 1);
}

// Do parts and heads until there is none left; threads share them.  Not 0: there is no memory.
int OF(pb_ragged)(const job *j, int64_t *next, int backward) {
  int64_t wide = whole(j->width, WIDE) + whole(j->value_width, WIDE);
  int64_t keys = whole(j->longest_key, KEYS) + WIDE;
  int64_t size = 3 * wide * (keys + QUERIES) + 2 * QUERIES * KEYS;
  REAL *scratch = aligned_alloc(64, whole(size * sizeof(REAL), 64));
  if (!scratch) return 1;
  for (int64_t i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < j->parts * j->heads;)
    (backward ? OF(backward) : OF(forward))(j, j->order[i / j->heads], i % j->heads, scratch);
  free(scratch);
  return 0;
}
