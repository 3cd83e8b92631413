// Matrix product for one element type (T) and its vectors (V of L lanes); included by product.c.
//
// B is packed once per block of k into panels of NR columns that all threads share; tasks are blocks
// of rows (and of columns, when rows are few), each packs its rows of A and runs the register tile.
// Without memory for the panels each task packs its columns in a little of its thread's: a tenth slower.
// Small products skip the packing of A, and that of B when its rows are contiguous already.

#define APART_ (256 << 10)  // bytes of B that a task packs by itself
#define KC_ (2048 / (int64_t)sizeof(T))  // longest block of k: a tile's rows of A stay in the first cache

typedef struct {
  const pb_gemm *g;
  const T *a, *b, *bias;
  T *c;
  T *panel;                    // packed B, or null: read b itself (in `block`)
  int64_t ldb;                 // row stride of a panel
  int64_t p0, kc, mc, nc, rows;  // this block of k; size of a task; tasks along m
  int first;  // first block of k: stores instead of adding
  int adds;   // to what is there, which is the bias
} N_(task);

static inline __attribute__((always_inline)) V N_(mul)(T s, V b, V c) { return b * s + c; }

// C from the sums of a tile: a partial panel, or one with a bias
static __attribute__((noinline)) void N_(finish)(const T *restrict out, int rows, T *restrict c,
                                                 int64_t ldc, int n, int add, T alpha,
                                                 const T *restrict bias, int64_t sm, int64_t sn) {
  enum { L = (int)(sizeof(V) / sizeof(T)) };
  for (int i = 0; i < rows; i++, c += ldc, out += 2 * L) {
    int j = 0;
    if (!bias || sn <= 1)
      for (; j + L <= n; j += L) {
        V x = *(const N_(mem) *)(out + j) * alpha;
        if (add) x += *(N_(mem) *)(c + j);
        if (bias) x += sn ? (V)*(const N_(mem) *)(bias + i * sm + j) : bias[i * sm] - (V){};
        *(N_(mem) *)(c + j) = x;
      }
    for (; j < n; j++) {
      T x = out[j] * alpha;
      if (add) x += c[j];
      if (bias) x += bias[i * sm + j * sn];
      c[j] = x;
    }
  }
}

// acc[rows][vectors] over k, then C; a: rows at a + i*am stepping ak (packed: am 1, ak MR)
static inline __attribute__((always_inline)) void N_(tile)(
    const int rows, const int vectors, int64_t k, const T *restrict a, int64_t am, int64_t ak,
    const T *restrict b, int64_t ldb, T *restrict c, int64_t ldc, int n, int add, T alpha,
    const T *restrict bias, int64_t sm, int64_t sn) {
  enum { L = (int)(sizeof(V) / sizeof(T)) };
  V acc[MR][2];
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++) acc[i][0] = acc[i][1] = (V){};
  const T *r[4] = {a, a + 4 * am, a + 8 * am, a + 12 * am};
  for (int64_t p = 0; p < k; p++) {
    V b0 = *(const N_(mem) *)b, b1 = vectors > 1 ? (V)*(const N_(mem) *)(b + L) : b0;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      T s = r[i / 4][(i % 4) * am];
      acc[i][0] = N_(mul)(s, b0, acc[i][0]);
      if (vectors > 1) acc[i][1] = N_(mul)(s, b1, acc[i][1]);
    }
    b += ldb;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) r[i] += ak;
  }
  if (bias || n < vectors * L) {  // the rare ends share one function: 24 copies would compile slowly
    T out[MR * 2 * L];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) *(N_(mem) *)(out + (i * 2 + v) * L) = acc[i][v];
    N_(finish)(out, rows, c, ldc, n, add, alpha, bias, sm, sn);
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
      N_(mem) *q = (N_(mem) *)(c + i * ldc + v * L);
      *q = add ? acc[i][v] * alpha + *q : acc[i][v] * alpha;
    }
}

#define TILE_(rows, vectors, packed)                                                               \
  static __attribute__((noinline)) void N_(t##rows##x##vectors##packed)(                           \
      int64_t k, const T *a, int64_t am, int64_t ak, const T *b, int64_t ldb, T *c, int64_t ldc,   \
      int n, int add, T alpha, const T *bias, int64_t sm, int64_t sn) {                            \
    N_(tile)(rows, vectors, k, a, packed ? 1 : am, packed ? MR : ak, b, ldb, c, ldc, n, add,       \
             alpha, bias, sm, sn);                                                                 \
  }
#define TILES_(rows) TILE_(rows, 1, 0) TILE_(rows, 2, 0) TILE_(rows, 1, 1) TILE_(rows, 2, 1)
TILES_(1)
TILES_(2)
TILES_(4)
#if MR > 6
TILES_(8)
TILES_(11)
TILES_(14)
#else
TILES_(6)
#endif

typedef void (*N_(tile_fn))(int64_t, const T *, int64_t, int64_t, const T *, int64_t, T *, int64_t,
                            int, int, T, const T *, int64_t, int64_t);
#define ROW_(rows) {{N_(t##rows##x10), N_(t##rows##x20)}, {N_(t##rows##x11), N_(t##rows##x21)}}
static const struct {
  int rows;
  N_(tile_fn) fn[2][2];
} N_(tiles)[] = {
#if MR > 6
    {14, ROW_(14)}, {11, ROW_(11)}, {8, ROW_(8)},
#else
    {6, ROW_(6)},
#endif
    {4, ROW_(4)}, {2, ROW_(2)}, {1, ROW_(1)}};

// how many rows the next tile takes of the m that are left
static inline int N_(pick)(int64_t m) {
  int t = 0;
  while (N_(tiles)[t].rows > m) t++;
#if MR > 6
  if (m == 22) return 1;  // 11 + 11 beats 14 + 8
#endif
  return t;
}

// L vectors of L elements, turned around in registers
static inline __attribute__((always_inline)) void N_(turn)(V *x) {
  enum { L = (int)(sizeof(V) / sizeof(T)) };
#pragma GCC unroll 4
  for (int h = L / 2; h; h /= 2) {
    N_(ivec) low, high;
    for (int j = 0; j < L; j++) {
      low[j] = j & h ? L + (j ^ h) : j;
      high[j] = j & h ? L + j : j ^ h;
    }
#pragma GCC unroll 16
    for (int i = 0; i < L; i++)
      if (!(i & h)) {
        V a = x[i], b = x[i | h];
#ifdef __clang__
        V lo, hi;
        for (int j = 0; j < L; j++) {
          lo[j] = low[j] < L ? a[low[j]] : b[low[j] - L];
          hi[j] = high[j] < L ? a[high[j]] : b[high[j] - L];
        }
        x[i] = lo;
        x[i | h] = hi;
#else
        x[i] = __builtin_shuffle(a, b, low);
        x[i | h] = __builtin_shuffle(a, b, high);
#endif
      }
  }
}

// rows i < m of A as k groups of MR; the buffer has room for one vector more
static void N_(pack_a)(const T *a, int64_t am, int64_t ak, int64_t m, int64_t k, T *restrict o) {
  enum { L = (int)(sizeof(V) / sizeof(T)) };
  int64_t p = 0;
  if (ak == 1 && MR <= L && m == MR) {
    for (; p + L <= k; p += L) {
      V x[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; i++) x[i] = i < MR ? (V)*(const N_(mem) *)(a + i * am + p) : (V){};
      N_(turn)(x);
#pragma GCC unroll 16
      for (int i = 0; i < L; i++) *(N_(mem) *)(o + (p + i) * MR) = x[i];
    }
  }
  for (; p < k; p++) {
    const T *q = a + p * ak;
    if (m == MR && am == 1) __builtin_memcpy(o + p * MR, q, MR * sizeof(T));
    else for (int64_t i = 0; i < MR; i++) o[p * MR + i] = i < m ? q[i * am] : 0;
  }
}

// columns j < n (at most NR) of B as k groups of NR
static void N_(pack_b)(const T *b, int64_t bk, int64_t bn, int64_t k, int64_t n, T *restrict o) {
  enum { L = (int)(sizeof(V) / sizeof(T)), NR = 2 * L };
  if (bn == 1 && n == NR) {
    for (int64_t p = 0; p < k; p++) {
      V x = *(const N_(mem) *)(b + p * bk), y = *(const N_(mem) *)(b + p * bk + L);
      *(V *)(o + p * NR) = x;
      *(V *)(o + p * NR + L) = y;
    }
    return;
  }
  if (bn == 1) {
    for (int64_t p = 0; p < k; p++) {
      T *restrict q = o + p * NR;
      *(V *)q = *(V *)(q + L) = (V){};
      for (int64_t j = 0; j < n; j++) q[j] = b[p * bk + j];
    }
    return;
  }
  int64_t p = 0;
  if (bk == 1)
    for (; p + L <= k; p += L)
#pragma GCC unroll 1
      for (int h = 0; h < NR; h += L) {
        V x[L];
#pragma GCC unroll 16
        for (int j = 0; j < L; j++) x[j] = h + j < n ? (V)*(const N_(mem) *)(b + (h + j) * bn + p) : (V){};
        N_(turn)(x);
#pragma GCC unroll 16
        for (int j = 0; j < L; j++) *(V *)(o + (p + j) * NR + h) = x[j];
      }
  for (; p < k; p++)
    for (int64_t j = 0; j < NR; j++) o[p * NR + j] = j < n ? b[p * bk + j * bn] : 0;
}

// one task: rows i0..i0+m, columns j0..j0+n of C for this block of k
static void N_(block)(const N_(task) *t, int64_t i0, int64_t m, int64_t j0, int64_t n, T *space) {
  enum { L = (int)(sizeof(V) / sizeof(T)), NR = 2 * L };
  const pb_gemm *g = t->g;
  int packed = space != NULL;
  for (int64_t i = 0; i < m;) {
    int which = N_(pick)(m - i), rows = N_(tiles)[which].rows;
    const T *a = t->a + (i0 + i) * g->am + t->p0 * g->ak;
    if (packed) {
      N_(pack_a)(a, g->am, g->ak, rows, t->kc, space);
      a = space;
    }
    for (int64_t j = 0; j < n; j += NR) {
      int width = (int)(n - j < NR ? n - j : NR);
      const T *b = t->panel ? t->panel + (j0 + j) * t->kc : t->b + t->p0 * g->bk + j0 + j;
      T *c = t->c + (i0 + i) * g->cm + j0 + j;
      const T *bias = t->bias && t->first ? t->bias + (i0 + i) * g->sm + (j0 + j) * g->sn : NULL;
      N_(tiles)[which].fn[packed][width > L](t->kc, a, g->am, g->ak, b, t->ldb, c, g->cm, width,
                                             !t->first, (T)g->alpha, bias, g->sm, g->sn);
    }
    i += rows;
  }
}

static void N_(run_pack)(void **p, int64_t begin, int64_t end) {
  N_(task) *t = (N_(task) *)p;
  const pb_gemm *g = t->g;
  enum { NR = 2 * (int)(sizeof(V) / sizeof(T)) };
  for (int64_t j = begin * NR; j < end * NR && j < g->n; j += NR)
    N_(pack_b)(t->b + t->p0 * g->bk + j * g->bn, g->bk, g->bn, t->kc, g->n - j < NR ? g->n - j : NR,
               t->panel + j * t->kc);
}

static void N_(run_tasks)(void **p, int64_t begin, int64_t end) {
  N_(task) *t = (N_(task) *)p;
  T *space = scratch((size_t)(MR * t->kc + 64) * sizeof(T));
  for (int64_t i = begin; i < end; i++) {
    int64_t i0 = i % t->rows * t->mc, j0 = i / t->rows * t->nc;
    int64_t m = t->g->m - i0 < t->mc ? t->g->m - i0 : t->mc, n = t->g->n - j0 < t->nc ? t->g->n - j0 : t->nc;
    if (m > 0 && n > 0) N_(block)(t, i0, m, j0, n, space);
  }
}

// Tasks that pack their columns of B themselves, in memory of their thread: some rows of A are packed
// more often, nothing is shared.
static void N_(run_apart)(void **p, int64_t begin, int64_t end) {
  enum { NR = 2 * (int)(sizeof(V) / sizeof(T)) };
  N_(task) t = *(N_(task) *)p;
  const pb_gemm *g = t.g;
  int64_t rows = (MR * t.kc + 64 + NR - 1) / NR * NR;
  T *space = scratch((size_t)(rows + t.kc * t.nc) * sizeof(T)), *panel = space + rows;
  for (int64_t i = begin; i < end; i++) {
    int64_t i0 = i % t.rows * t.mc, j0 = i / t.rows * t.nc;
    int64_t m = g->m - i0 < t.mc ? g->m - i0 : t.mc, n = g->n - j0 < t.nc ? g->n - j0 : t.nc;
    for (int64_t j = 0; j < n; j += NR)
      N_(pack_b)(t.b + t.p0 * g->bk + (j0 + j) * g->bn, g->bk, g->bn, t.kc, n - j < NR ? n - j : NR,
                 panel + j * t.kc);
    t.panel = panel - j0 * t.kc;
    N_(block)(&t, i0, m, j0, n, space);
  }
}

// one product on the calling thread, without packing A
static void N_(small)(N_(task) *t, T *panel) {
  enum { L = (int)(sizeof(V) / sizeof(T)), NR = 2 * L };
  const pb_gemm *g = t->g;
  t->p0 = 0;
  t->kc = g->k;
  t->first = !t->adds;
  int64_t whole = g->bn == 1 ? g->n / NR * NR : 0;  // columns that can be read where they are
  t->panel = NULL;
  t->ldb = g->bk;
  if (whole) N_(block)(t, 0, g->m, 0, whole, NULL);
  if (whole == g->n) return;
  t->panel = panel - whole * t->kc;
  t->ldb = NR;
  for (int64_t j = whole; j < g->n; j += NR)
    N_(pack_b)(t->b + j * g->bn, g->bk, g->bn, g->k, g->n - j < NR ? g->n - j : NR, t->panel + j * t->kc);
  N_(block)(t, 0, g->m, whole, g->n - whole, NULL);
}

static void N_(large)(N_(task) *t, T *panel) {
  enum { L = (int)(sizeof(V) / sizeof(T)), NR = 2 * L };
  const pb_gemm *g = t->g;
  int64_t blocks = (g->k + KC_ - 1) / KC_, kc = (g->k + blocks - 1) / blocks;
  int64_t threads = pb_get_threads(), wanted = 4 * threads;
  // a task's part of B stays in the second cache while its rows go by
  int64_t panels = (g->n + NR - 1) / NR, fit = (1 << 20) / (kc * NR * (int64_t)sizeof(T));
  if (fit < 4) fit = 4;
  int64_t cols = (panels + fit - 1) / fit;
  t->mc = MR * 8;
  while (t->mc > MR * 2 && (g->m + t->mc - 1) / t->mc * cols < wanted) t->mc -= MR;
  t->rows = (g->m + t->mc - 1) / t->mc;
  while (t->rows * cols < 2 * threads && cols * 4 <= panels) cols++;
  t->nc = (panels + cols - 1) / cols * NR;
  cols = (g->n + t->nc - 1) / t->nc;
  t->panel = panel;
  t->ldb = NR;
  if (!panel) {  // columns that stay in the second cache; rows apart where threads would have nothing to do
    fit = APART_ / (kc * NR * (int64_t)sizeof(T));
    cols = (panels + fit - 1) / fit;
    while (cols < threads && cols * 2 <= panels) cols++;
    t->nc = (panels + cols - 1) / cols * NR;
    cols = (g->n + t->nc - 1) / t->nc;
    t->rows = (2 * threads + cols - 1) / cols;
    t->mc = (g->m + t->rows * MR - 1) / (t->rows * MR) * MR;
    t->rows = (g->m + t->mc - 1) / t->mc;
  }
  for (t->p0 = 0; t->p0 < g->k; t->p0 += kc) {
    t->kc = g->k - t->p0 < kc ? g->k - t->p0 : kc;
    t->first = t->p0 == 0 && !t->adds;
    if (panel) pb_parallel(N_(run_pack), (void **)t, panels, panels / (4 * threads) + 1);
    pb_parallel(panel ? N_(run_tasks) : N_(run_apart), (void **)t, t->rows * cols, 1);
  }
}

static void N_(run_batch)(void **p, int64_t begin, int64_t end) {
  const N_(task) *all = (const N_(task) *)p;
  const pb_gemm *g = all->g;
  enum { NR = 2 * (int)(sizeof(V) / sizeof(T)) };
  T *panel = scratch((size_t)(g->k * (g->n + NR)) * sizeof(T));
  for (int64_t i = begin; i < end; i++) {
    N_(task) t = *all;
    t.a = all->a + i * g->ab;
    t.b = all->b + i * g->bb;
    t.c = all->c + i * g->cb;
    t.bias = all->bias ? all->bias + i * g->sb : NULL;
    N_(small)(&t, panel);
  }
}

void N_(gemm)(const pb_gemm *g) {
  enum { NR = 2 * (int)(sizeof(V) / sizeof(T)) };
  N_(task) t = {.g = g, .a = g->a, .b = g->b, .c = g->c, .bias = g->bias, .first = 1};
  if (g->m <= 0 || g->n <= 0 || g->batch <= 0) return;
  if (g->bias == g->c) {
    if (g->k <= 0) return;
    t.bias = NULL;
    t.adds = 1;
  }
  if (g->k <= 0) {
    for (int64_t b = 0; b < g->batch; b++)
      for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
          t.c[b * g->cb + i * g->cm + j] = t.bias ? t.bias[b * g->sb + i * g->sm + j * g->sn] : 0;
    return;
  }
  double work = (double)g->m * (double)g->n * (double)g->k;
  int64_t panel = g->k * (g->n + NR);
  int modest = panel * (int64_t)sizeof(T) <= (512 << 10) && g->k <= 1024;
  if (modest && (work < 1.5e6 || g->batch >= pb_get_threads())) {
    double each = work > 1e3 ? work : 1e3;
    int64_t grain = (int64_t)(4e5 / each) + 1;
    pb_parallel(N_(run_batch), (void **)&t, g->batch, grain);
    return;
  }
  for (int64_t i = 0; i < g->batch; i++) {
    t.a = (const T *)g->a + i * g->ab;
    t.b = (const T *)g->b + i * g->bb;
    t.c = (T *)g->c + i * g->cb;
    t.bias = g->bias && !t.adds ? (const T *)g->bias + i * g->sb : NULL;
    N_(large)(&t, g->space);
  }
}
#undef KC_
#undef APART_
#undef TILE_
#undef TILES_
#undef ROW_
