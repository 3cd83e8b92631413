// Kernels of eager execution on contiguous arrays: included once per type, see eager.c.  REAL is the
// type, VEC a vector of WIDE of them, OF(name) this type's name of a function.
// Sums are of vectors, and go into a double every BLOCK elements: their error does not grow with n.

#define BLOCK (32 * WIDE)

// Fewer than WIDE numbers, and others behind them.
INLINE VEC OF(part)(const REAL *p, int64_t n, REAL rest) {
  REAL whole[WIDE];
  for (int k = 0; k < WIDE; k++) whole[k] = rest;
  memcpy(whole, p, (size_t)n * sizeof(REAL));
  return LOAD(whole);
}
INLINE void OF(put)(REAL *p, VEC v, int64_t n) { memcpy(p, &v, (size_t)n * sizeof(REAL)); }

// A loop over n numbers: BODY(load, store) with k, in vectors and a part of one.
#define OVER(n, BODY)                                                                               \
  {                                                                                                 \
    int64_t k = 0;                                                                                  \
    for (; k + WIDE <= (n); k += WIDE) BODY(WHOLE_LOAD, WHOLE_STORE)                                 \
    if (k < (n)) {                                                                                  \
      int64_t left = (n) - k;                                                                       \
      BODY(PART_LOAD, PART_STORE)                                                                   \
    }                                                                                               \
  }
#define WHOLE_LOAD(p) LOAD((p) + k)
#define WHOLE_STORE(p, v) STORE((p) + k, v)
#define PART_LOAD(p) OF(part)((p) + k, left, 0)
#define PART_STORE(p, v) OF(put)((p) + k, v, left)

// The sum of TERM(load) over n numbers; what is behind the last has to give zero.
#define SUMMED(total, n, TERM)                                                                      \
  for (int64_t from = 0; from < (n); from += BLOCK) {                                               \
    int64_t k = from, to = from + BLOCK < (n) ? from + BLOCK : (n), left;                           \
    VEC a = {}, b = {};                                                                             \
    for (; k + 2 * WIDE <= to; k += WIDE) {                                                         \
      a += TERM(WHOLE_LOAD);                                                                        \
      k += WIDE;                                                                                    \
      b += TERM(WHOLE_LOAD);                                                                        \
    }                                                                                               \
    for (; k + WIDE <= to; k += WIDE) a += TERM(WHOLE_LOAD);                                        \
    if ((left = to - k) > 0) b += TERM(PART_LOAD);                                                  \
    total += SUM(a + b);                                                                            \
  }

// The highest of a row; a NaN is passed over, sums will show it.
INLINE REAL OF(peak)(const REAL *x, int64_t n) {
  VEC a = SPLAT(-PB_INF), b = a;
  int64_t k = 0;
  for (; k + 2 * WIDE <= n; k += 2 * WIDE) {
    a = HIGHER(LOAD(x + k), a);
    b = HIGHER(LOAD(x + k + WIDE), b);
  }
  a = HIGHER(b, a);
  for (; k + WIDE <= n; k += WIDE) a = HIGHER(LOAD(x + k), a);
  if (k < n) a = HIGHER(OF(part)(x + k, n - k, -PB_INF), a);
  return HIGH(a);
}

// Powers of x - high, kept in out where there is one, and their sum.
INLINE double OF(powers)(REAL *out, const REAL *x, int64_t n, REAL high) {
  double total = 0;
  for (int64_t from = 0; from < n; from += BLOCK) {
    int64_t k = from, to = from + BLOCK < n ? from + BLOCK : n;
    VEC sum = {};
    for (; k + WIDE <= to; k += WIDE) {
      VEC p = EXP(LOAD(x + k) - high);
      if (out) STORE(out + k, p);
      sum += p;
    }
    if (k < to) {
      VEC p = EXP(OF(part)(x + k, to - k, -PB_INF) - high);
      if (out) OF(put)(out + k, p, to - k);
      if (high != -PB_INF) sum += p;
      else sum += SPLAT(PB_NAN);
    }
    total += SUM(sum);
  }
  return total;
}

static void OF(softmax_row)(REAL *out, const REAL *x, int64_t n, int logarithm) {
  REAL high = OF(peak)(x, n);
  if (logarithm) {
    REAL shift = LOG1((REAL)OF(powers)(NULL, x, n, high));
#define BODY(GET, SET) { SET(out, (GET(x) - high) - shift); }
    OVER(n, BODY)
#undef BODY
  } else {
    REAL total = (REAL)OF(powers)(out, x, n, high);
#define BODY(GET, SET) { SET(out, GET(out) / total); }
    OVER(n, BODY)
#undef BODY
  }
}

// The same down n rows, for up to WIDE columns at a time.
static void OF(softmax_columns)(REAL *out, const REAL *x, int64_t n, int64_t inner, int logarithm) {
  for (int64_t c = 0; c < inner; c += WIDE) {
    int64_t some = inner - c < WIDE ? inner - c : WIDE;
#define GET(p) (some == WIDE ? LOAD((p) + i * inner + c) : OF(part)((p) + i * inner + c, some, 0))
#define SET(p, v) { if (some == WIDE) STORE((p) + i * inner + c, v); else OF(put)((p) + i * inner + c, v, some); }
    VEC high = SPLAT(-PB_INF), total = {};
    for (int64_t i = 0; i < n; i++) high = HIGHER(GET(x), high);
    for (int64_t i = 0; i < n; i++) {
      VEC p = EXP(GET(x) - high);
      if (!logarithm) SET(out, p)
      total += p;
    }
    if (logarithm) total = LOG(total);
    for (int64_t i = 0; i < n; i++)
      if (logarithm) SET(out, (GET(x) - high) - total)
      else SET(out, GET(out) / total)
#undef GET
#undef SET
  }
}

static void OF(softmax_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t size = j->n * j->inner;
  for (int64_t i = begin; i < end; i++) {
    REAL *out = (REAL *)j->to[0] + i * size;
    const REAL *x = (const REAL *)j->from[0] + i * size;
    if (j->inner == 1) OF(softmax_row)(out, x, j->n, j->flag);
    else OF(softmax_columns)(out, x, j->n, j->inner, j->flag);
  }
}

// y (g - sum(g y)), or g - exp(y) sum(g)
static void OF(softmax_backward_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    REAL *out = (REAL *)j->to[0] + i * n;
    const REAL *g = (const REAL *)j->from[0] + i * n, *y = (const REAL *)j->from[1] + i * n;
    double total = 0;
    if (j->flag) {
#define TERM(GET) GET(g)
      SUMMED(total, n, TERM)
#undef TERM
      REAL sum = (REAL)total;
#define BODY(GET, SET) { SET(out, GET(g) - EXP(GET(y)) * sum); }
      OVER(n, BODY)
#undef BODY
    } else {
#define TERM(GET) GET(g) * GET(y)
      SUMMED(total, n, TERM)
#undef TERM
      REAL sum = (REAL)total;
#define BODY(GET, SET) { VEC v = GET(y); SET(out, GET(g) * v - v * sum); }
      OVER(n, BODY)
#undef BODY
    }
  }
}

// Rows with zero mean and unit variance, scaled and shifted; mean and 1 / deviation
static void OF(layer_norm_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  const REAL *w = j->from[1], *b = j->from[2];
  for (int64_t i = begin; i < end; i++) {
    REAL *out = (REAL *)j->to[0] + i * n;
    const REAL *x = (const REAL *)j->from[0] + i * n;
    double total = 0, squares = 0;
#define TERM(GET) GET(x)
    SUMMED(total, n, TERM)
#undef TERM
    REAL mean = (REAL)(total / n);
    for (int64_t from = 0; from < n; from += BLOCK) {
      int64_t k = from, to = from + BLOCK < n ? from + BLOCK : n;
      VEC sum = {};
      for (; k + WIDE <= to; k += WIDE) {
        VEC d = LOAD(x + k) - mean;
        sum += d * d;
      }
      if (k < to) {
        VEC d = OF(part)(x + k, to - k, mean) - mean;
        sum += d * d;
      }
      squares += SUM(sum);
    }
    REAL rstd = (REAL)1 / SQRT1((REAL)(squares / n) + (REAL)j->eps);
    if (w && b) {
#define BODY(GET, SET) { SET(out, (GET(x) - mean) * rstd * GET(w) + GET(b)); }
      OVER(n, BODY)
#undef BODY
    } else {
#define BODY(GET, SET) {                                                                            \
  VEC v = (GET(x) - mean) * rstd;                                                                   \
  if (w) v *= GET(w);                                                                               \
  if (b) v += GET(b);                                                                               \
  SET(out, v); }
      OVER(n, BODY)
#undef BODY
    }
    ((REAL *)j->to[1])[i] = mean;
    ((REAL *)j->to[2])[i] = rstd;
  }
}

// Their gradients; those of weight and bias are summed for each of `parts` groups of rows
static void OF(layer_norm_backward_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  const REAL *w = j->from[2], *means = j->from[3], *rstds = j->from[4];
  for (int64_t part = begin; part < end; part++) {
    REAL *dw = j->to[1] ? (REAL *)j->to[1] + part * n : NULL;
    REAL *db = j->to[2] ? (REAL *)j->to[2] + part * n : NULL;
    if (dw) memset(dw, 0, (size_t)n * sizeof(REAL));
    if (db) memset(db, 0, (size_t)n * sizeof(REAL));
    for (int64_t i = j->rows * part / j->parts; i < j->rows * (part + 1) / j->parts; i++) {
      const REAL *g = (const REAL *)j->from[0] + i * n, *x = (const REAL *)j->from[1] + i * n;
      REAL mean = means[i], rstd = rstds[i];
      if (j->to[0]) {
        REAL *dx = (REAL *)j->to[0] + i * n;
        double total = 0, along = 0;
        for (int64_t from = 0; from < n; from += BLOCK) {
          int64_t k = from, to = from + BLOCK < n ? from + BLOCK : n, left;
          VEC s = {}, t = {};
#define TERM(GET) { VEC u = GET(g); if (w) u *= GET(w); s += u; t += u * ((GET(x) - mean) * rstd); }
          for (; k + WIDE <= to; k += WIDE) TERM(WHOLE_LOAD)
          if ((left = to - k) > 0) TERM(PART_LOAD)
#undef TERM
          total += SUM(s);
          along += SUM(t);
        }
        REAL a = (REAL)(total / n), c = (REAL)(along / n);
#define BODY(GET, SET) {                                                                            \
  VEC u = GET(g);                                                                                   \
  if (w) u *= GET(w);                                                                               \
  SET(dx, (u - a - (GET(x) - mean) * rstd * c) * rstd); }
        OVER(n, BODY)
#undef BODY
      }
      if (dw) {
#define BODY(GET, SET) { SET(dw, GET(dw) + GET(g) * ((GET(x) - mean) * rstd)); }
        OVER(n, BODY)
#undef BODY
      }
      if (db) {
#define BODY(GET, SET) { SET(db, GET(db) + GET(g)); }
        OVER(n, BODY)
#undef BODY
      }
    }
  }
}

// Sums, or sums of squares, of `parts` pieces of each row, in doubles
static void OF(sum_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t size = (j->n + j->parts - 1) / j->parts;
  for (int64_t i = begin; i < end; i++) {
    int64_t low = i % j->parts * size, left = j->n - low, n = left < 0 ? 0 : left < size ? left : size;
    const REAL *x = (const REAL *)j->from[0] + i / j->parts * j->n + low;
    double total = 0;
    if (j->flag) {
#define TERM(GET) GET(x) * GET(x)
      SUMMED(total, n, TERM)
#undef TERM
    } else {
#define TERM(GET) GET(x)
      SUMMED(total, n, TERM)
#undef TERM
    }
    ((double *)j->to[0])[i] = total;
  }
}

// The same down the n rows of each matrix, for the columns of a chunk; divided by eps
static void OF(sum_columns_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  for (int64_t i = begin; i < end; i++) {
    int64_t c = i % j->parts * COLUMNS, last = c + COLUMNS < j->inner ? c + COLUMNS : j->inner;
    const REAL *x = (const REAL *)j->from[0] + i / j->parts * j->n * j->inner;
    REAL *out = (REAL *)j->to[0] + i / j->parts * j->inner, sums[COLUMNS], some[COLUMNS];
    int64_t width = last - c;
    for (int64_t k = 0; k < width; k++) sums[k] = 0;
    for (int64_t from = 0; from < j->n; from += 32) {
      for (int64_t k = 0; k < width; k++) some[k] = 0;
      for (int64_t r = from; r < from + 32 && r < j->n; r++) {
        const REAL *row = x + r * j->inner + c;
        for (int64_t k = 0; k < width; k++) some[k] += row[k];
      }
      for (int64_t k = 0; k < width; k++) sums[k] += some[k];
    }
    for (int64_t k = 0; k < width; k++) out[c + k] = (REAL)(sums[k] / (REAL)j->eps);
  }
}

// Variances of rows: squares of distances from the mean, divided by eps
static void OF(variance_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    const REAL *x = (const REAL *)j->from[0] + i * n;
    double total = 0, squares = 0;
#define TERM(GET) GET(x)
    SUMMED(total, n, TERM)
#undef TERM
    REAL mean = (REAL)(total / n);
    for (int64_t from = 0; from < n; from += BLOCK) {
      int64_t k = from, to = from + BLOCK < n ? from + BLOCK : n;
      VEC sum = {};
      for (; k + WIDE <= to; k += WIDE) {
        VEC d = LOAD(x + k) - mean;
        sum += d * d;
      }
      if (k < to) {
        VEC d = OF(part)(x + k, to - k, mean) - mean;
        sum += d * d;
      }
      squares += SUM(sum);
    }
    ((REAL *)j->to[0])[i] = (REAL)(squares / j->eps);
  }
}

// The highest of each row, the first of equals, or the first NaN; to[0] may be missing
static void OF(highest_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    const REAL *x = (const REAL *)j->from[0] + i * n;
    REAL high = OF(peak)(x, n);
    int64_t k = 0;
    int odd = 0;
    for (int64_t e = 0; e < n; e++) odd |= x[e] != x[e];
    if (odd)
      while (x[k] == x[k]) k++;
    else
      while (x[k] < high) k++;
    if (j->to[0]) ((REAL *)j->to[0])[i] = x[k];
    ((int64_t *)j->to[1])[i] = k;
  }
}

// A product of small matrices, of which b lies in rows, plus a row or a matrix that lies in rows.
static void OF(small_product)(REAL *out, const REAL *base, int64_t down, const REAL *a, int64_t a_step,
                              const REAL *b, int64_t m, int64_t n, int64_t depth) {
  for (int64_t c = 0; c < n; c += 2 * WIDE) {
    int64_t left = n - c, wide = left > WIDE;
    int64_t first = left < WIDE ? left : WIDE, second = left - first < WIDE ? left - first : WIDE;
    for (int64_t i = 0; i < m; i++, a += a_step) {
      const REAL *y = b + c;
      VEC s = {}, t = {};
      if (first == WIDE && second == WIDE)
        for (int64_t k = 0; k < depth; k++, y += n) {
          s += a[k] * LOAD(y);
          t += a[k] * LOAD(y + WIDE);
        }
      else
        for (int64_t k = 0; k < depth; k++, y += n) {
          s += a[k] * (first == WIDE ? LOAD(y) : OF(part)(y, first, 0));
          if (wide) t += a[k] * OF(part)(y + WIDE, second, 0);
        }
      if (base) {
        s += OF(part)(base + i * down + c, first, 0);
        if (wide) t += OF(part)(base + i * down + c + WIDE, second, 0);
      }
      OF(put)(out + i * n + c, s, first);
      if (wide) OF(put)(out + i * n + c + WIDE, t, second);
    }
    a -= m * a_step;
  }
}

static void OF(turned)(REAL *to, const REAL *from, int64_t step, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++) to[i * columns + k] = from[k * step + i];
}

static void OF(add_base)(REAL *out, const REAL *base, int64_t down, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; i++, out += n, base += down)
    for (int64_t k = 0; k < n; k++) out[k] += base[k];
}

// Functions of each element
#define POINTWISE(name, ...)                                                                        \
  static void OF(name)(void **p, int64_t begin, int64_t end) {                                      \
    job *j = (job *)p;                                                                              \
    int64_t low = begin * CHUNK, n = (end * CHUNK < j->n ? end * CHUNK : j->n) - low;               \
    REAL *out = (REAL *)j->to[0] + low;                                                             \
    const REAL *x = (const REAL *)j->from[0] + low;                                                 \
    const REAL *y = j->from[1] ? (const REAL *)j->from[1] + low : x;                                \
    OVER(n, __VA_ARGS__)                                                                            \
  }
#define INV_SQRT2 (REAL)0.70710678118654752440
#define SLOPE (REAL)0.79788456080286535588  // sqrt(2 / pi)
#define CUBIC (REAL)0.044715
#define HALF (REAL)0.5
#define BODY(GET, SET) { VEC v = GET(x); SET(out, HALF * v * (1 + ERF(v * INV_SQRT2))); }
POINTWISE(gelu_part, BODY)
#undef BODY
#define BODY(GET, SET) {                                                                            \
  VEC v = GET(x);                                                                                   \
  SET(out, HALF * v * (1 + TANH(SLOPE * (v + CUBIC * v * v * v)))); }
POINTWISE(gelu_tanh_part, BODY)
#undef BODY
#define BODY(GET, SET) {                                                                            \
  VEC v = GET(y), cdf = HALF * (1 + ERF(v * INV_SQRT2));                                            \
  SET(out, GET(x) * (cdf + v * (EXP(-HALF * v * v) * (REAL)0.39894228040143267794))); }
POINTWISE(gelu_backward_part, BODY)
#undef BODY
#define BODY(GET, SET) {                                                                            \
  VEC v = GET(y), t = TANH(SLOPE * (v + CUBIC * v * v * v));                                        \
  VEC s = SLOPE * (1 + 3 * CUBIC * v * v);                                                          \
  SET(out, GET(x) * (HALF * (1 + t) + HALF * v * (1 - t * t) * s)); }
POINTWISE(gelu_tanh_backward_part, BODY)
#undef BODY
#define BODY(GET, SET) { VEC v = GET(x); SET(out, v / (1 + EXP(-v))); }
POINTWISE(silu_part, BODY)
#undef BODY
#define BODY(GET, SET) {                                                                            \
  VEC v = GET(y), s = 1 / (EXP(-v) + 1);                                                            \
  SET(out, GET(x) * (s * (1 + v * (1 - s)))); }
POINTWISE(silu_backward_part, BODY)
#undef BODY

// Minus the entries at the targets; -1 with a target that is no class, then NumPy has to say so
static int OF(nll)(job *j, int64_t ignored, double *sum, double *weights) {
  const REAL *x = j->from[0], *w = j->from[2];
  const int64_t *target = j->from[1];
  REAL *terms = j->to[0];
  double total = 0, weight = 0;
  for (int64_t i = 0; i < j->rows; i++) {
    int64_t t = target[i];
    REAL term = 0;
    if (t != ignored) {
      if ((uint64_t)t >= (uint64_t)j->n) return -1;
      REAL own = w ? w[t] : 1;
      term = w ? -x[i * j->n + t] * own : -x[i * j->n + t];
      weight += own;
      total += term;
    }
    if (terms) terms[i] = term;
  }
  *sum = total;
  *weights = weight;
  return 0;
}
static int OF(nll_backward)(job *j, int64_t ignored) {
  const REAL *g = j->from[0], *w = j->from[2], *divisor = j->from[3];
  const int64_t *target = j->from[1];
  REAL *out = j->to[0];
  REAL one = j->flag ? 0 : divisor ? -g[0] / divisor[0] : -g[0];
  for (int64_t i = 0; i < j->rows; i++)
    if (target[i] != ignored && (uint64_t)target[i] >= (uint64_t)j->n) return -1;
  for (int64_t i = 0; i < j->rows; i++)
    if (target[i] != ignored) {
      REAL v = j->flag ? -g[i] : one;
      out[i * j->n + target[i]] = w ? v * w[target[i]] : v;
    }
  return 0;
}

// Batch normalisation of channels; rows are examples, parts are channels, n what is in one plane
static void OF(batch_norm_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n, step = j->parts * n;
  const REAL *w = j->from[1], *b = j->from[2];
  for (int64_t c = begin; c < end; c++) {
    const REAL *first = (const REAL *)j->from[0] + c * n;
    REAL mean, rstd;
    if (j->flag) {
      double total = 0, squares = 0, count = (double)j->rows * n;
      for (int64_t i = 0; i < j->rows; i++) {
        const REAL *x = first + i * step;
#define TERM(GET) GET(x)
        SUMMED(total, n, TERM)
#undef TERM
      }
      mean = (REAL)(total / count);
      for (int64_t i = 0; i < j->rows; i++) {
        const REAL *x = first + i * step;
        VEC sum = {};
        int64_t k = 0;
        for (; k + WIDE <= n; k += WIDE) {
          VEC d = LOAD(x + k) - mean;
          sum += d * d;
          if (k % BLOCK == 0) {
            squares += SUM(sum);
            sum = (VEC){};
          }
        }
        if (k < n) {
          VEC d = OF(part)(x + k, n - k, mean) - mean;
          sum += d * d;
        }
        squares += SUM(sum);
      }
      REAL var = (REAL)(squares / count);
      rstd = (REAL)1 / SQRT1(var + (REAL)j->eps);
      ((REAL *)j->to[1])[c] = mean;
      ((REAL *)j->to[2])[c] = rstd;
      if (j->to[3]) {
        REAL old = (REAL)(1 - j->momentum), more = (REAL)j->momentum;
        REAL unbiased = count > 1 ? var * (REAL)(count / (count - 1)) : (REAL)PB_NAN;
        ((REAL *)j->to[3])[c] = old * ((const REAL *)j->from[3])[c] + more * mean;
        ((REAL *)j->to[4])[c] = old * ((const REAL *)j->from[4])[c] + more * unbiased;
      }
    } else {
      mean = ((const REAL *)j->from[3])[c];
      rstd = (REAL)1 / SQRT1(((const REAL *)j->from[4])[c] + (REAL)j->eps);
    }
    REAL scale = w ? rstd * w[c] : rstd, shift = b ? b[c] : 0;
    for (int64_t i = 0; i < j->rows; i++) {
      const REAL *x = first + i * step;
      REAL *out = (REAL *)j->to[0] + c * n + i * step;
      if (b) {
#define BODY(GET, SET) { SET(out, (GET(x) - mean) * scale + shift); }
        OVER(n, BODY)
#undef BODY
      } else {
#define BODY(GET, SET) { SET(out, (GET(x) - mean) * scale); }
        OVER(n, BODY)
#undef BODY
      }
    }
  }
}

static void OF(batch_norm_backward_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n, step = j->parts * n;
  const REAL *w = j->from[2];
  for (int64_t c = begin; c < end; c++) {
    const REAL *g0 = (const REAL *)j->from[0] + c * n, *x0 = (const REAL *)j->from[1] + c * n;
    REAL mean = ((const REAL *)j->from[3])[c], rstd = ((const REAL *)j->from[4])[c];
    if (!j->flag) rstd = (REAL)1 / SQRT1(rstd + (REAL)j->eps);
    double total = 0, along = 0, count = (double)j->rows * n;
    if (j->flag || j->to[1] || j->to[2])
      for (int64_t i = 0; i < j->rows; i++) {
        const REAL *g = g0 + i * step, *x = x0 + i * step;
        for (int64_t from = 0; from < n; from += BLOCK) {
          int64_t k = from, to = from + BLOCK < n ? from + BLOCK : n, left;
          VEC s = {}, t = {};
#define TERM(GET) { VEC u = GET(g); s += u; t += u * ((GET(x) - mean) * rstd); }
          for (; k + WIDE <= to; k += WIDE) TERM(WHOLE_LOAD)
          if ((left = to - k) > 0) TERM(PART_LOAD)
#undef TERM
          total += SUM(s);
          along += SUM(t);
        }
      }
    if (j->to[1]) ((REAL *)j->to[1])[c] = (REAL)along;
    if (j->to[2]) ((REAL *)j->to[2])[c] = (REAL)total;
    if (!j->to[0]) continue;
    REAL scale = w ? rstd * w[c] : rstd, a = (REAL)(total / count), d = (REAL)(along / count);
    for (int64_t i = 0; i < j->rows; i++) {
      const REAL *g = g0 + i * step, *x = x0 + i * step;
      REAL *dx = (REAL *)j->to[0] + c * n + i * step;
      if (j->flag) {
#define BODY(GET, SET) { SET(dx, (GET(g) - a - (GET(x) - mean) * rstd * d) * scale); }
        OVER(n, BODY)
#undef BODY
      } else {
#define BODY(GET, SET) { SET(dx, GET(g) * scale); }
        OVER(n, BODY)
#undef BODY
      }
    }
  }
}

// The gates of an LSTM, four in a row of 4 n: input, forget, candidate, output; kept in to[2]
static void OF(lstm_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    const REAL *x = (const REAL *)j->from[0] + i * 4 * n, *cell = (const REAL *)j->from[2] + i * n;
    const REAL *y = (const REAL *)j->from[1] + i * 4 * n;
    REAL *h = (REAL *)j->to[0] + i * n, *c = (REAL *)j->to[1] + i * n;
    REAL *kept = (REAL *)j->to[2] + i * 4 * n;
#define GATE(GET, q) (GET(x + (q) * n) + GET(y + (q) * n))
#define SIGMOID(v) (1 / (1 + EXP(-(v))))
#define BODY(GET, SET) {                                                                            \
  VEC in = SIGMOID(GATE(GET, 0)), keep = SIGMOID(GATE(GET, 1)), now = TANH(GATE(GET, 2));           \
  VEC out = SIGMOID(GATE(GET, 3)), next = keep * GET(cell) + in * now;                              \
  SET(kept, in); SET(kept + n, keep); SET(kept + 2 * n, now); SET(kept + 3 * n, out);               \
  SET(c, next); SET(h, out * TANH(next)); }
    OVER(n, BODY)
#undef BODY
#undef GATE
#undef SIGMOID
  }
}

// Gradients of the gates and of the cell, from those of the hidden state and of the new cell
static void OF(lstm_backward_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    const REAL *gh = j->from[0] ? (const REAL *)j->from[0] + i * n : NULL;
    const REAL *gc = j->from[1] ? (const REAL *)j->from[1] + i * n : NULL;
    const REAL *before = (const REAL *)j->from[2] + i * n, *after = (const REAL *)j->from[3] + i * n;
    const REAL *in = (const REAL *)j->from[4] + i * 4 * n, *keep = in + n, *now = keep + n;
    const REAL *show = now + n;
    REAL *out = (REAL *)j->to[0] + i * 4 * n, *cell = (REAL *)j->to[1] + i * n;
#define BODY(GET, SET) {                                                                            \
  VEC level = TANH(GET(after)), a = GET(in), f = GET(keep), b = GET(now), o = GET(show), c = {};    \
  VEC h = {};                                                                                       \
  if (gh) {                                                                                         \
    h = GET(gh);                                                                                    \
    c = h * o * (1 - level * level);                                                                \
    if (gc) c += GET(gc);                                                                           \
    h = h * level * (o * (1 - o));                                                                  \
  } else                                                                                            \
    c = GET(gc);                                                                                    \
  SET(out, c * b * (a * (1 - a))); SET(out + n, c * GET(before) * (f * (1 - f)));                   \
  SET(out + 2 * n, c * a * (1 - b * b)); SET(out + 3 * n, h); SET(cell, c * f); }
    OVER(n, BODY)
#undef BODY
  }
}

// A step of a GRU: gates of input and hidden state, three in a row of 3 n, and the hidden state.  Kept in
// to[1], five in a row: reset, keep, the new state, the old one, and what reset was multiplied by
static void OF(gru_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    const REAL *x = (const REAL *)j->from[0] + i * 3 * n, *y = (const REAL *)j->from[1] + i * 3 * n;
    const REAL *h = (const REAL *)j->from[2] + i * n;
    REAL *out = (REAL *)j->to[0] + i * n, *kept = (REAL *)j->to[1] + i * 5 * n;
#define SIGMOID(v) (1 / (1 + EXP(-(v))))
#define BODY(GET, SET) {                                                                            \
  VEC reset = SIGMOID(GET(x) + GET(y)), keep = SIGMOID(GET(x + n) + GET(y + n));                    \
  VEC inner = GET(y + 2 * n), old = GET(h), new = TANH(reset * inner + GET(x + 2 * n));             \
  SET(kept, reset); SET(kept + n, keep); SET(kept + 2 * n, new); SET(kept + 3 * n, old);            \
  SET(kept + 4 * n, inner); SET(out, (old - new) * keep + new); }
    OVER(n, BODY)
#undef BODY
#undef SIGMOID
  }
}

// Gradients of the gates and of the hidden state
static void OF(gru_backward_part)(void **p, int64_t begin, int64_t end) {
  job *j = (job *)p;
  int64_t n = j->n;
  for (int64_t i = begin; i < end; i++) {
    const REAL *g = (const REAL *)j->from[0] + i * n, *kept = (const REAL *)j->from[1] + i * 5 * n;
    REAL *first = (REAL *)j->to[0] + i * 3 * n, *second = (REAL *)j->to[1] + i * 3 * n;
    REAL *out = (REAL *)j->to[2] + i * n;
#define BODY(GET, SET) {                                                                            \
  VEC reset = GET(kept), keep = GET(kept + n), new = GET(kept + 2 * n), d = GET(g);                 \
  VEC before = d * (1 - keep) * (1 - new * new);                                                    \
  VEC for_reset = before * GET(kept + 4 * n) * (reset * (1 - reset));                               \
  VEC for_keep = d * (GET(kept + 3 * n) - new) * (keep * (1 - keep));                               \
  SET(first, for_reset); SET(first + n, for_keep); SET(first + 2 * n, before);                      \
  SET(second, for_reset); SET(second + n, for_keep); SET(second + 2 * n, before * reset);           \
  SET(out, d * keep); }
    OVER(n, BODY)
#undef BODY
  }
}
