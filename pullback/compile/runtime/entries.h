// Products with the entries of a sparse matrix: included once per type, see sparse.c.  REAL is the type,
// VEC a vector of WIDE of them, OF(name) this type's name of a function.

#define PART(from, c) (c < vectors - 1 || last == WIDE ? LOAD(from + c * WIDE) : LOADN(from + c * WIDE, last))
// Some columns of a row of out: the sum of values[k] times row cols[k] of dense, over the k < n.  The
// columns are so many vectors, of the last of which there are `last` numbers; they stay in registers.
// Where there are few, every other k has sums of its own, which do not wait for those of the others.
// What is needed AHEAD is asked for: `room` entries are there to be looked at.
INLINE void OF(block)(REAL *out, const REAL *values, const int64_t *cols, int64_t n, int64_t room,
                      const REAL *dense, int64_t width, int vectors, int last, int fresh) {
  VEC s[MOST], t[2] = {};
#pragma GCC unroll 8
  for (int c = 0; c < vectors; c++) s[c] = fresh ? (VEC){} : PART(out, c);
  for (int64_t k = 0; k < n; k++) {
    const REAL *d = dense + cols[k] * width, v = values[k];
    const REAL *later = dense + cols[k + AHEAD < room ? k + AHEAD : k] * width;
#pragma GCC unroll 8
    for (int c = 0; vectors > 1 && c < vectors; c++) __builtin_prefetch(later + c * WIDE);
#pragma GCC unroll 8
    for (int c = 0; c < vectors; c++) s[c] += v * PART(d, c);
    if (vectors <= 2 && ++k < n) {
      const REAL *e = dense + cols[k] * width, w = values[k];
#pragma GCC unroll 2
      for (int c = 0; c < vectors; c++) t[c] += w * PART(e, c);
    }
  }
#pragma GCC unroll 2
  for (int c = 0; vectors <= 2 && c < vectors; c++) s[c] += t[c];
#pragma GCC unroll 8
  for (int c = 0; c < vectors; c++)
    if (c < vectors - 1 || last == WIDE) STORE(out + c * WIDE, s[c]);
    else STOREN(out + c * WIDE, s[c], last);
}
#undef PART

// The same for fewer columns than a vector has, number by number.
INLINE void OF(narrow)(REAL *out, const REAL *values, const int64_t *cols, int64_t n, const REAL *dense,
                       int64_t width, int64_t columns, int fresh) {
  for (int64_t i = 0; i < columns; i++) {
    REAL s = fresh ? 0 : out[i], t = 0;
    int64_t k = 0;
    for (; k + 2 <= n; k += 2) {
      s += values[k] * dense[cols[k] * width + i];
      t += values[k + 1] * dense[cols[k + 1] * width + i];
    }
    if (k < n) s += values[k] * dense[cols[k] * width + i];
    out[i] = s + t;
  }
}

#define BLOCK(vectors, last) \
  OF(block)(out + i, values, cols, n, room, dense + i, width, vectors, last, fresh)
// The same for any number of columns.
INLINE void OF(row)(REAL *out, const REAL *values, const int64_t *cols, int64_t n, int64_t room,
                    const REAL *dense, int64_t width, int64_t columns, int fresh) {
  int64_t i = 0;
  if (columns == 1) {
    OF(narrow)(out, values, cols, n, dense, width, 1, fresh);
    return;
  }
  for (; i + MOST * WIDE <= columns; i += MOST * WIDE) BLOCK(MOST, WIDE);
#if MASKS
  int last = (columns - i) % WIDE;
  if (last) switch ((columns - i) / WIDE) {
      case 0: BLOCK(1, last); return;
      case 1: BLOCK(2, last); return;
      case 2: BLOCK(3, last); return;
      case 3: BLOCK(4, last); return;
      case 4: BLOCK(5, last); return;
      case 5: BLOCK(6, last); return;
      case 6: BLOCK(7, last); return;
      default: BLOCK(8, last); return;
    }
#endif
  switch ((columns - i) / WIDE) {
    case 0: break;
    case 1: BLOCK(1, WIDE); break;
    case 2: BLOCK(2, WIDE); break;
    case 3: BLOCK(3, WIDE); break;
    case 4: BLOCK(4, WIDE); break;
    case 5: BLOCK(5, WIDE); break;
    case 6: BLOCK(6, WIDE); break;
    default: BLOCK(7, WIDE); break;
  }
  i += (columns - i) / WIDE * WIDE;
  if (i < columns) OF(narrow)(out + i, values, cols, n, dense + i, width, columns - i, fresh);
}
#undef BLOCK

// Columns of x times those of a row of y, lane by lane; what is left of them is added to `rest`.
INLINE VEC OF(lanewise)(const REAL *x, const REAL *y, int64_t width, REAL *rest) {
  VEC s0 = {}, s1 = {};
  int64_t i = 0;
  for (; i + 2 * WIDE <= width; i += 2 * WIDE) {
    s0 += LOAD(x + i) * LOAD(y + i);
    s1 += LOAD(x + i + WIDE) * LOAD(y + i + WIDE);
  }
  if (i + WIDE <= width) s0 += LOAD(x + i) * LOAD(y + i), i += WIDE;
#if MASKS
  if (i < width) s1 += LOADN(x + i, width - i) * LOADN(y + i, width - i);
#else
  for (; i < width; i++) *rest += x[i] * y[i];
#endif
  return s0 + s1;
}

#if !defined(__clang__)
// The sums of four vectors, in the first four lanes.
INLINE VEC OF(sums)(VEC a, VEC b, VEC c, VEC d) {
  INTS k = LANES, two = (k & -2) + (k & 1) * WIDE, four = (k & -4) + (k & 1) + (k >> 1 & 1) * WIDE;
  VEC p = __builtin_shuffle(a, b, two) + __builtin_shuffle(a, b, two + 1);
  VEC q = __builtin_shuffle(c, d, two) + __builtin_shuffle(c, d, two + 1);
  p = __builtin_shuffle(p, q, four) + __builtin_shuffle(p, q, four + 2);
#pragma GCC unroll 4
  for (int w = WIDE / 2; w >= 4; w /= 2) p += __builtin_shuffle(p, (k + w) & (WIDE - 1));
  return p;
}
#endif

// out[e] = the product of x and row cols[e] of y, for n entries; `room` can be looked at.
INLINE void OF(dots)(REAL *out, const REAL *x, const int64_t *cols, int64_t n, int64_t room,
                     const REAL *y, int64_t width) {
  int64_t e = 0;
#if !defined(__clang__)
  for (; e + 4 <= n; e += 4) {
    REAL rest[4] = {0};
    VEC s[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      const REAL *later = y + cols[e + k + AHEAD < room ? e + k + AHEAD : e] * width;
      for (int64_t i = 0; i < width && i < MOST * WIDE; i += 64 / sizeof(REAL)) __builtin_prefetch(later + i);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) s[k] = OF(lanewise)(x, y + cols[e + k] * width, width, rest + k);
    VEC sums = OF(sums)(s[0], s[1], s[2], s[3]);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) out[e + k] = sums[k] + rest[k];
  }
#endif
  for (; e < n; e++) {
    REAL rest = 0;
    VEC s = OF(lanewise)(x, y + cols[e] * width, width, &rest);
    out[e] = SUM(s) + rest;
  }
}

// The products of rows, whose entries lie one behind the other; a chunk has some of the rows.
static void OF(rows_body)(void **p, int64_t begin, int64_t end) {
  const shared *s = (const shared *)p;
  const pb_entries *j = s->job;
  const REAL *values = j->values;
  for (int64_t r = j->size * begin / s->chunks; r < j->size * end / s->chunks; r++) {
    int64_t e = j->starts[r], n = j->starts[r + 1] - e;
    OF(row)((REAL *)j->out + r * j->width, values + e, j->cols + e, n, j->count - e, j->x, j->width,
            j->width, 1);
  }
}

// The same for entries in any order, a row after the other as it is found.
static void OF(scattered)(const pb_entries *j) {
  REAL *out = j->out;
  memset(out, 0, j->size * j->width * sizeof(REAL));
  for (int64_t e = 0, after; e < j->count; e = after) {
    for (after = e + 1; after < j->count && j->rows[after] == j->rows[e];) after++;
    OF(row)(out + j->rows[e] * j->width, (const REAL *)j->values + e, j->cols + e, after - e,
            j->count - e, j->x, j->width, j->width, 0);
  }
}

// Row by row, with entries that are put in the order of their rows, those of a row as they were: sums
// stay in registers, and threads have rows of their own.  Not 0: there is no memory.
static int OF(sorted)(const pb_entries *j, int ordered) {
  pb_entries k = *j;
  size_t starts_size = (j->size + 1) * sizeof(int64_t), cols_size = j->count * sizeof(int64_t);
  char *space = malloc(j->starts ? 0 : starts_size + 2 * cols_size * !ordered);
  REAL *values = ordered ? NULL : malloc(j->count * sizeof(REAL));
  if ((!space && !j->starts) || (!values && !ordered)) return free(space), free(values), 1;
  if (!j->starts) {
    int64_t *order = (int64_t *)(space + starts_size), *cols = order + j->count;
    k.starts = (int64_t *)space, k.order = ordered ? NULL : order;
    pb_order(j->rows, j->count, j->size, (int64_t *)space, ordered ? NULL : order);
    if (!ordered) {
      for (int64_t e = 0; e < j->count; e++) cols[e] = j->cols[order[e]];
      k.cols = cols;
    }
  }
  if (!ordered) {
    for (int64_t e = 0; e < j->count; e++) values[e] = ((const REAL *)j->values)[k.order[e]];
    k.values = values;
  }
  share(&k, OF(rows_body));
  free(space), free(values);
  return 0;
}

static void OF(dots_body)(void **p, int64_t begin, int64_t end) {
  const shared *s = (const shared *)p;
  const pb_entries *j = s->job;
  const int64_t *rows = j->rows;
  int64_t e = j->count * begin / s->chunks, last = j->count * end / s->chunks;
  for (int64_t after; e < last; e = after) {
    for (after = e + 1; after < last && rows[after] == rows[e];) after++;
    OF(dots)((REAL *)j->out + e, (const REAL *)j->x + rows[e] * j->width, j->cols + e, after - e,
             j->count - e, j->y, j->width);
  }
}

int64_t OF(pb_spmm)(const pb_entries *j);
// The same where some integers may count from the end.
static int64_t OF(wrapped)(const pb_entries *j, int64_t outside) {
  int64_t *rows = malloc(2 * j->count * sizeof(int64_t)), *cols = rows + j->count;
  if (!rows) return outside;
  for (int64_t e = 0; e < j->count; e++) {
    rows[e] = j->rows[e] + (j->wrap & 1 && j->rows[e] < 0 ? j->size : 0);
    cols[e] = j->cols[e] + (j->wrap & 2 && j->cols[e] < 0 ? j->depth : 0);
  }
  pb_entries k = *j;
  k.rows = rows, k.cols = cols, k.wrap = 0;
  outside = OF(pb_spmm)(&k);
  free(rows);
  return outside;
}

// Sums of rows of x at cols, times values, at rows.  0, or the number of an entry that is outside, from 1:
// less than 0 if its column is.
int64_t OF(pb_spmm)(const pb_entries *j) {
  int64_t outside = 0;
  int ordered = j->starts ? !j->order : look(j, &outside);
  if (outside) return j->wrap ? OF(wrapped)(j, outside) : outside;
  if ((!ordered && !j->starts && j->width < WIDE) || OF(sorted)(j, ordered)) OF(scattered)(j);
  return 0;
}

// The products of rows of x and of y at entries; the same numbers.
int64_t OF(pb_sddmm)(const pb_entries *j) {
  int64_t outside = 0;
  if (!j->starts) look(j, &outside);
  if (!outside) share(j, OF(dots_body));
  return outside;
}

// For generated code: a row of a product, and the products of a row with others; all is inside.
void OF(pb_row)(REAL *out, const REAL *values, const int64_t *cols, int64_t n, int64_t room,
                const REAL *dense, int64_t width) {
  OF(row)(out, values, cols, n, room, dense, width, width, 1);
}
void OF(pb_dots)(REAL *out, const REAL *x, const int64_t *cols, int64_t n, int64_t room, const REAL *y,
                 int64_t width) {
  OF(dots)(out, x, cols, n, room, y, width);
}
