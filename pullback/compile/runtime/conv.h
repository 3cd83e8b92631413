// Convolution for one element type, on the register tiles of gemm.h; included by product.c.
//
// The three kernels of conv_kernels.py: `gather` (image and weight give the map), `scatter` (map and weight
// give the image) and `correlate` (image and map give the weight).  Each is a matrix product with the
// columns of the image, which are never stored as a whole: the image is copied once into planes with its
// padding, where a window's element lies at `start of the window + offset of the element`, and panels of
// columns are packed from there as the tiles need them.  The last dim of a plane is split by the stride
// (element w is at w / stride of part w % stride), so that neighbouring windows are neighbours in memory
// whatever the stride.  Sums are in an order that does not depend on the number of threads.
// The memory for all that comes with the call; `compile/blocks.py` says how much it is.

enum { N_(L) = (int)(sizeof(V) / sizeof(T)), N_(NR) = 2 * (int)(sizeof(V) / sizeof(T)) };
#define KC_ (2048 / (int64_t)sizeof(T))

typedef struct {
  const pb_conv *c;
  int64_t size[3], row, part, plane;  // of a padded plane; its rows; the parts of a row
  int64_t taps, pixels, panels, k;    // elements of a window; windows; panels of them; rows of columns
  int64_t *offset;                    // of the k elements of a window
  T *image;                           // padded planes
  T *packed;                          // what all tasks read: tiles of the weight, or panels of the map
  T *sums;                            // correlate: [part][group][k][outer]
  int64_t kc, blocks, tiles, step;    // blocks of the inner sum; tiles of rows; panels, channels or rows of a task
  int64_t count, parts;               // tasks of a group; parts of the batch, or examples of a task
  int64_t used;                       // bytes of the memory that came with the call
  void *own[4];                       // what was not in it
  int owns;
} N_(conv_task);

static void *N_(take)(N_(conv_task) *t, int64_t bytes) {
  int64_t at = t->used;
  t->used += (bytes + 63) / 64 * 64;
  if (t->used <= t->c->room) return (char *)t->c->space + at;
  void *data = t->own[t->owns++] = pb_alloc((size_t)bytes);
  if (!data) abort();
  return data;
}

// Where windows [q, q + n) begin, as runs of neighbours
static int N_(runs)(const N_(conv_task) *t, int64_t q, int64_t n, int64_t *at, int64_t *length) {
  const pb_conv *c = t->c;
  int count = 0;
  while (n > 0) {
    int64_t w = q % c->counts[2], h = q / c->counts[2] % c->counts[1], d = q / c->counts[2] / c->counts[1];
    int64_t len = c->counts[2] - w < n ? c->counts[2] - w : n;
    at[count] = (d * c->stride[0] * t->size[1] + h * c->stride[1]) * t->row + w;
    length[count++] = len;
    q += len;
    n -= len;
  }
  return count;
}

static void N_(conv_plan)(N_(conv_task) *t, const pb_conv *c) {
  t->c = c;
  for (int i = 0; i < 3; i++)
    t->size[i] = (c->counts[i] - 1) * c->stride[i] + (c->kernel[i] - 1) * c->dilation[i] + 1;
  t->part = (t->size[2] + c->stride[2] - 1) / c->stride[2];
  t->row = t->part * c->stride[2];
  t->plane = t->size[0] * t->size[1] * t->row;
  t->taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
  t->pixels = c->counts[0] * c->counts[1] * c->counts[2];
  t->panels = (t->pixels + N_(NR) - 1) / N_(NR);
  t->k = c->inner * t->taps;
  t->offset = N_(take)(t, t->k * (int64_t)sizeof(int64_t));
  int64_t *o = t->offset;
  for (int64_t i = 0; i < c->inner; i++)
    for (int64_t d = 0; d < c->kernel[0]; d++)
      for (int64_t h = 0; h < c->kernel[1]; h++)
        for (int64_t w = 0; w < c->kernel[2]; w++) {
          int64_t x = w * c->dilation[2];
          *o++ = i * t->plane + (d * c->dilation[0] * t->size[1] + h * c->dilation[1]) * t->row +
                 x % c->stride[2] * t->part + x / c->stride[2];
        }
}

// copies between a plane of the image and its padded form; `back` copies out of the padded form
static void N_(plane)(const N_(conv_task) *t, T *image, T *padded, int back) {
  const pb_conv *c = t->c;
  if (!back) __builtin_memset(padded, 0, (size_t)t->plane * sizeof(T));
  else __builtin_memset(image, 0, (size_t)(c->image[0] * c->image[1] * c->image[2]) * sizeof(T));
  for (int64_t d = 0; d < c->image[0]; d++)
    for (int64_t h = 0; h < c->image[1]; h++) {
      int64_t y = d + c->padding[0], x = h + c->padding[1], s = c->stride[2];
      if (y >= t->size[0] || x >= t->size[1]) continue;
      T *from = image + (d * c->image[1] + h) * c->image[2], *to = padded + (y * t->size[1] + x) * t->row;
      int64_t n = t->size[2] - c->padding[2] < c->image[2] ? t->size[2] - c->padding[2] : c->image[2];
      if (s == 1 && n > 0) {
        T *a = back ? to + c->padding[2] : from, *b = back ? from : to + c->padding[2];
        __builtin_memcpy(b, a, (size_t)n * sizeof(T));
        continue;
      }
      for (int64_t f = 0; f < s; f++) {  // parts of a row
        int64_t w = (f + s - c->padding[2] % s) % s;
        T *q = to + f * t->part + (w + c->padding[2]) / s;
        if (back)
          for (; w < n; w += s) from[w] = *q++;
        else
          for (; w < n; w += s) *q++ = from[w];
      }
    }
}

static void N_(pad)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  int64_t size = t->c->image[0] * t->c->image[1] * t->c->image[2];
  for (int64_t i = begin; i < end; i++)
    N_(plane)(t, (T *)t->c->x + i * size, t->image + i * t->plane, 0);
}

// all planes of the batch with their padding, and room to read one vector too many
static void N_(pad_all)(N_(conv_task) *t) {
  int64_t planes = t->c->n * t->c->groups * t->c->inner;
  t->image = N_(take)(t, (planes * t->plane + 2 * N_(NR)) * (int64_t)sizeof(T));
  __builtin_memset(t->image + planes * t->plane, 0, 2 * N_(NR) * sizeof(T));
  pb_parallel(N_(pad), (void **)t, planes, 1 + 16384 / (t->plane + 1));
}

// rows [p0, p0 + kc) of columns [q, q + n) as kc groups of NR.  Whole vectors are written, what they write
// too much is written again after: rows ascend, and the buffer has room for one vector more.
static void N_(columns)(const N_(conv_task) *t, const T *image, int64_t p0, int64_t kc, int64_t q, int64_t n,
                        T *restrict o) {
  int64_t at[N_(NR)], length[N_(NR)];
  int runs = N_(runs)(t, q, n, at, length);
  const int64_t *offset = t->offset + p0;
  if (runs == 1 && n > N_(L)) {
    for (int64_t p = 0; p < kc; p++, o += N_(NR)) {
      const T *s = image + offset[p] + at[0];
      *(N_(mem) *)o = *(const N_(mem) *)s;
      *(N_(mem) *)(o + N_(L)) = *(const N_(mem) *)(s + N_(L));
    }
    return;
  }
  for (int64_t p = 0; p < kc; p++, o += N_(NR)) {
    const T *s = image + offset[p];
    T *d = o;
    for (int r = 0; r < runs; r++) {
      *(N_(mem) *)d = *(const N_(mem) *)(s + at[r]);
      if (length[r] > N_(L)) *(N_(mem) *)(d + N_(L)) = *(const N_(mem) *)(s + at[r] + N_(L));
      d += length[r];
    }
  }
}

static int64_t N_(tile_count)(int64_t m) {
  int64_t count = 0;
  for (; m > 0; count++) m -= N_(tiles)[N_(pick)(m)].rows;
  return count;
}

static inline T *N_(packed_tile)(const N_(conv_task) *t, int64_t tile, int64_t block) {
  return t->packed + (tile * t->blocks + block) * (MR * t->kc + 64);
}

static void N_(blocks)(N_(conv_task) *t, int64_t k) {
  t->blocks = (k + KC_ - 1) / KC_;
  t->kc = (k + t->blocks - 1) / t->blocks;
}

// tiles of a matrix (rows m at stride am, k at stride ak) from number `first` on
static void N_(pack_tiles)(const N_(conv_task) *t, const T *a, int64_t am, int64_t ak, int64_t m, int64_t k,
                           int64_t first) {
  for (int64_t i = 0; i < m; first++) {
    int rows = N_(tiles)[N_(pick)(m - i)].rows;
    for (int64_t b = 0; b < t->blocks; b++) {
      int64_t kc = k - b * t->kc < t->kc ? k - b * t->kc : t->kc;
      N_(pack_a)(a + i * am + b * t->kc * ak, am, ak, rows, kc, N_(packed_tile)(t, first, b));
    }
    i += rows;
  }
}

// ---- image and weight give the map ------------------------------------------------------------------

// Tasks are panels of NR windows of one group; a panel does not go over from one example to the next.
static void N_(run_gather)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  T *space = scratch((size_t)(t->kc * t->step * N_(NR) + 2 * N_(NR)) * sizeof(T));
  for (int64_t i = begin; i < end; i++) {
    int64_t g = i / t->count, first = i % t->count * t->step, last = first + t->step;
    if (last > c->n * t->panels) last = c->n * t->panels;
    for (int64_t b = 0; b < t->blocks; b++) {
      int64_t p0 = b * t->kc, kc = t->k - p0 < t->kc ? t->k - p0 : t->kc;
      for (int64_t j = first; j < last; j++) {
        int64_t e = j / t->panels, q = j % t->panels * N_(NR);
        N_(columns)(t, t->image + (e * c->groups + g) * c->inner * t->plane, p0, kc, q,
                    t->pixels - q < N_(NR) ? t->pixels - q : N_(NR), space + (j - first) * N_(NR) * kc);
      }
      int64_t tile = g * t->tiles;
      for (int64_t m = 0; m < c->outer; tile++) {
        int shape = N_(pick)(c->outer - m);
        const T *bias = c->bias && !b ? (const T *)c->bias + g * c->outer + m : NULL;
        for (int64_t j = first; j < last; j++) {
          int64_t e = j / t->panels, q = j % t->panels * N_(NR);
          int width = (int)(t->pixels - q < N_(NR) ? t->pixels - q : N_(NR));
          T *out = (T *)c->map + ((e * c->groups + g) * c->outer + m) * t->pixels + q;
          N_(tiles)[shape].fn[1][width > N_(L)](kc, N_(packed_tile)(t, tile, b), 1, MR,
                                                space + (j - first) * N_(NR) * kc, N_(NR), out, t->pixels, width,
                                                b > 0, 1, bias, 1, 0);
        }
        m += N_(tiles)[shape].rows;
      }
    }
  }
}

static void N_(gather)(N_(conv_task) *t) {
  const pb_conv *c = t->c;
  N_(blocks)(t, t->k);
  t->tiles = N_(tile_count)(c->outer);
  t->packed = N_(take)(t, c->groups * t->tiles * t->blocks * (MR * t->kc + 64) * (int64_t)sizeof(T));
  for (int64_t g = 0; g < c->groups; g++)
    N_(pack_tiles)(t, (const T *)c->weight + g * c->outer * t->k, t->k, 1, c->outer, t->k, g * t->tiles);
  N_(pad_all)(t);
  // a task's columns stay in the second cache
  int64_t all = c->n * t->panels, fit = (512 << 10) / (t->kc * N_(NR) * (int64_t)sizeof(T));
  int64_t wanted = 4 * pb_get_threads() / c->groups + 1;
  t->step = (all + wanted - 1) / wanted;
  if (t->step > fit) t->step = fit < 1 ? 1 : fit;
  t->count = (all + t->step - 1) / t->step;
  pb_parallel(N_(run_gather), (void **)t, c->groups * t->count, 1);
}

// ---- map and weight give the image ------------------------------------------------------------------

static void N_(add_run)(T *restrict to, const T *restrict from, int64_t n) {
  int64_t j = 0;
  for (; j + N_(L) <= n; j += N_(L)) *(N_(mem) *)(to + j) += *(const N_(mem) *)(from + j);
  for (; j < n; j++) to[j] += from[j];
}

enum { N_(WIDE) = 8 };  // panels at a time

// Tasks are some channels of as many examples as fill a block of panels.
static void N_(run_scatter)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t planes = t->step * t->plane, panel = c->outer * N_(NR), runs[N_(WIDE)];
  T *image = scratch((size_t)(t->parts * planes + (panel + MR * N_(NR)) * N_(WIDE) + 4 * N_(NR)) * sizeof(T));
  T *space = image + (t->parts * planes + N_(NR)) / N_(NR) * N_(NR), *made = space + panel * N_(WIDE) + N_(NR);
  int64_t size = c->image[0] * c->image[1] * c->image[2], at[N_(WIDE)][N_(NR)], length[N_(WIDE)][N_(NR)];
  for (int64_t i = begin; i < end; i++) {
    int64_t part = i % t->count, c0 = part * t->step, g = i / t->count % c->groups, e0 = i / t->count / c->groups * t->parts;
    int64_t channels = c->inner - c0 < t->step ? c->inner - c0 : t->step;
    int64_t examples = c->n - e0 < t->parts ? c->n - e0 : t->parts, rows = channels * t->taps;
    __builtin_memset(image, 0, (size_t)(examples * planes) * sizeof(T));
    for (int64_t first = 0; first < examples * t->panels; first += N_(WIDE)) {
      int64_t count = examples * t->panels - first < N_(WIDE) ? examples * t->panels - first : N_(WIDE);
      for (int64_t j = 0; j < count; j++) {
        int64_t e = (first + j) / t->panels, q = (first + j) % t->panels * N_(NR);
        int64_t n = t->pixels - q < N_(NR) ? t->pixels - q : N_(NR);
        const T *map = (const T *)c->map + ((e0 + e) * c->groups + g) * c->outer * t->pixels + q;
        N_(pack_b)(map, t->pixels, 1, c->outer, n, space + j * panel);
        runs[j] = N_(runs)(t, q, n, at[j], length[j]);
      }
      int64_t tile = (g * t->count + part) * t->tiles;
      for (int64_t r = 0; r < rows; tile++) {
        int shape = N_(pick)(rows - r), height = N_(tiles)[shape].rows;
        for (int64_t b = 0; b < t->blocks; b++) {
          int64_t m = b * t->kc, kc = c->outer - m < t->kc ? c->outer - m : t->kc;
          for (int64_t j = 0; j < count; j++)
            N_(tiles)[shape].fn[1][1](kc, N_(packed_tile)(t, tile, b), 1, MR, space + j * panel + m * N_(NR),
                                      N_(NR), made + j * MR * N_(NR), N_(NR), N_(NR), b > 0, 1, NULL, 0, 0);
        }
        for (int64_t j = 0; j < count; j++)
          for (int k = 0; k < height; k++) {
            T *to = image + (first + j) / t->panels * planes + t->offset[r + k];
            const T *from = made + (j * MR + k) * N_(NR);
            for (int s = 0; s < runs[j]; from += length[j][s++]) N_(add_run)(to + at[j][s], from, length[j][s]);
          }
        r += height;
      }
    }
    for (int64_t e = 0; e < examples; e++)
      for (int64_t k = 0; k < channels; k++)
        N_(plane)(t, (T *)c->x + (((e0 + e) * c->groups + g) * c->inner + c0 + k) * size,
                  image + e * planes + k * t->plane, 1);
  }
}

static void N_(scatter)(N_(conv_task) *t) {
  const pb_conv *c = t->c;
  N_(blocks)(t, c->outer);
  // few enough channels for their planes to stay in the second cache, and for many threads (not for those
  // that are there: where tiles begin decides the order of the sums)
  t->parts = N_(WIDE) / t->panels < 1 ? 1 : N_(WIDE) / t->panels;
  while (t->parts > 1 && (c->n + t->parts - 1) / t->parts * c->groups < 32) t->parts--;
  int64_t sets = (c->n + t->parts - 1) / t->parts * c->groups, wanted = 32 / sets + 1;
  int64_t fit = (1 << 20) / (t->parts * t->plane * (int64_t)sizeof(T));
  t->step = (c->inner + wanted - 1) / wanted;
  if (t->step > fit) t->step = fit;
  if (t->step < 4) t->step = c->inner < 4 ? c->inner : 4;
  t->count = (c->inner + t->step - 1) / t->step;
  t->tiles = N_(tile_count)(t->step * t->taps) + 4;  // the last task may have more tiles, of fewer rows
  t->packed = N_(take)(t, c->groups * t->count * t->tiles * t->blocks * (MR * t->kc + 64) * (int64_t)sizeof(T));
  for (int64_t g = 0; g < c->groups; g++)
    for (int64_t i = 0; i < t->count; i++) {
      int64_t c0 = i * t->step, channels = c->inner - c0 < t->step ? c->inner - c0 : t->step;
      N_(pack_tiles)(t, (const T *)c->weight + g * c->outer * t->k + c0 * t->taps, 1, t->k, channels * t->taps,
                     c->outer, (g * t->count + i) * t->tiles);
    }
  pb_parallel(N_(run_scatter), (void **)t, sets * t->count, 1);
}

// ---- image and map give the weight ------------------------------------------------------------------

// The inner sum runs over the windows of all examples of a part of the batch, in blocks of kc.

static void N_(pack_map)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t panels = (c->outer + N_(NR) - 1) / N_(NR);
  for (int64_t i = begin; i < end; i++) {  // one example of one group: [part][group][panel][window][NR]
    int64_t g = i / c->n, e = i % c->n, part = e * t->parts / c->n;
    int64_t first = (part * c->n + t->parts - 1) / t->parts, next = ((part + 1) * c->n + t->parts - 1) / t->parts;
    int64_t depth = (next - first) * t->pixels;
    T *to = t->packed + (first * c->groups + g * (next - first)) * t->pixels * panels * N_(NR) +
            (e - first) * t->pixels * N_(NR);
    const T *from = (const T *)c->map + (e * c->groups + g) * c->outer * t->pixels;
    for (int64_t j = 0; j < panels; j++)
      N_(pack_b)(from + j * N_(NR) * t->pixels, 1, t->pixels, t->pixels,
                 c->outer - j * N_(NR) < N_(NR) ? c->outer - j * N_(NR) : N_(NR), to + j * depth * N_(NR));
  }
}

// rows [p0, p0 + rows) of n columns from window s of the examples at `image` on, as n groups of MR
static void N_(turned)(const N_(conv_task) *t, const T *image, int64_t p0, int rows, int64_t s, int64_t n,
                       T *restrict o) {
  const pb_conv *c = t->c;
  const int64_t *offset = t->offset + p0, next = c->groups * c->inner * t->plane;
  while (n > 0) {
    int64_t e = s / t->pixels, q = s % t->pixels, at, length;
    int64_t left = c->counts[2] - q % c->counts[2];
    N_(runs)(t, q, left < n ? left : n, &at, &length);
    const T *from = image + e * next + at;
#if MR * PB_SIZE <= PB_VB
    for (int64_t x = 0; x < length; x += N_(L)) {
      V v[N_(L)];
#pragma GCC unroll 16
      for (int i = 0; i < N_(L); i++) v[i] = i < rows ? (V)*(const N_(mem) *)(from + offset[i < rows ? i : 0] + x) : (V){};
      N_(turn)(v);
      int64_t count = length - x < N_(L) ? length - x : N_(L);
      for (int64_t i = 0; i < count; i++) *(N_(mem) *)(o + (x + i) * MR) = v[i];
    }
#else
    for (int i = 0; i < MR; i++)
      for (int64_t x = 0; x < length; x++) o[x * MR + i] = i < rows ? from[offset[i] + x] : 0;
#endif
    o += length * MR;
    s += length;
    n -= length;
  }
}

static void N_(run_correlate)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t panels = (c->outer + N_(NR) - 1) / N_(NR);
  T *space = scratch((size_t)(MR * t->kc + 64 + N_(NR)) * sizeof(T));
  for (int64_t i = begin; i < end; i++) {
    int64_t row = i % t->count * t->step, g = i / t->count % c->groups, part = i / t->count / c->groups;
    int64_t first = (part * c->n + t->parts - 1) / t->parts, next = ((part + 1) * c->n + t->parts - 1) / t->parts;
    int64_t depth = (next - first) * t->pixels, last = row + t->step < t->k ? row + t->step : t->k;
    const T *map = t->packed + (first * c->groups + g * (next - first)) * t->pixels * panels * N_(NR);
    const T *image = t->image + (first * c->groups + g) * c->inner * t->plane;
    T *sums = t->sums + (part * c->groups + g) * t->k * c->outer;
    for (int64_t s = 0; s < depth; s += t->kc) {
      int64_t kc = depth - s < t->kc ? depth - s : t->kc;
      for (int64_t r = row; r < last;) {
        int shape = N_(pick)(last - r), rows = N_(tiles)[shape].rows;
        N_(turned)(t, image, r, rows, s, kc, space);
        for (int64_t j = 0; j < panels; j++) {
          int width = (int)(c->outer - j * N_(NR) < N_(NR) ? c->outer - j * N_(NR) : N_(NR));
          N_(tiles)[shape].fn[1][width > N_(L)](kc, space, 1, MR, map + (j * depth + s) * N_(NR), N_(NR),
                                                sums + r * c->outer + j * N_(NR), c->outer, width, s > 0, 1, NULL,
                                                0, 0);
        }
        r += rows;
      }
    }
  }
}

static void N_(add_parts)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t size = c->groups * t->k * c->outer;
  for (int64_t i = begin; i < end; i++) {  // one row of the weight
    const T *from = t->sums + i / c->outer * t->k * c->outer + i % c->outer;
    T *to = (T *)c->weight + i * t->k;
    for (int64_t k = 0; k < t->k; k++) {
      T sum = from[k * c->outer];
      for (int64_t part = 1; part < t->parts; part++) sum += from[part * size + k * c->outer];
      to[k] = sum;
    }
  }
}

static void N_(correlate)(N_(conv_task) *t) {
  const pb_conv *c = t->c;
  int64_t panels = (c->outer + N_(NR) - 1) / N_(NR), size = c->groups * t->k * c->outer;
  t->step = 4 * MR;
  t->count = (t->k + t->step - 1) / t->step;
  t->parts = 16 / (t->count * c->groups) + 1;
  int64_t fit = (32 << 20) / (size * (int64_t)sizeof(T));
  if (t->parts > fit) t->parts = fit < 1 ? 1 : fit;
  if (t->parts > c->n) t->parts = c->n;
  t->kc = KC_;
  t->sums = N_(take)(t, t->parts * size * (int64_t)sizeof(T));
  t->packed = N_(take)(t, c->n * c->groups * t->pixels * panels * N_(NR) * (int64_t)sizeof(T));
  N_(pad_all)(t);
  pb_parallel(N_(pack_map), (void **)t, c->n * c->groups, 1);
  pb_parallel(N_(run_correlate), (void **)t, t->parts * c->groups * t->count, 1);
  pb_parallel(N_(add_parts), (void **)t, c->groups * c->outer, 1 + 16384 / (t->k * t->parts + 1));
}

// ---- one channel at a time ---------------------------------------------------------------------------

// Groups of one channel have no matrix to speak of: windows are multiplied where they lie.

// for all rows of windows: `length` windows from number `q_` on, the first of which begins at `at`
#define FOR_RUNS_(t)                                                                                \
  for (int64_t q_ = 0, length = (t)->c->counts[2], at, one; q_ < (t)->pixels && N_(runs)(t, q_, length, &at, &one); \
       q_ += length)

static void N_(run_direct)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t size = c->image[0] * c->image[1] * c->image[2];
  T *image = scratch((size_t)(t->plane + 2 * N_(NR)) * sizeof(T));
  for (int64_t i = begin; i < end; i++) {
    T *x = (T *)c->x + i * size;
    if (c->what == 0) N_(plane)(t, x, image, 0);
    else __builtin_memset(image, 0, (size_t)t->plane * sizeof(T));
    for (int64_t o = 0; o < c->outer; o++) {
      int64_t row = i % c->groups * c->outer + o;
      const T *weight = (const T *)c->weight + row * t->taps;
      T *map = (T *)c->map + (i * c->outer + o) * t->pixels;
      T bias = c->bias ? ((const T *)c->bias)[row] : 0;
      FOR_RUNS_(t) {
        if (c->what == 0)
          for (int64_t w = 0; w < length; w += N_(L)) {
            V sum = bias - (V){};
            for (int64_t k = 0; k < t->taps; k++)
              sum = N_(mul)(weight[k], (V) * (const N_(mem) *)(image + t->offset[k] + at + w), sum);
            if (length - w >= N_(L)) *(N_(mem) *)(map + q_ + w) = sum;
            else __builtin_memcpy(map + q_ + w, &sum, (size_t)(length - w) * sizeof(T));
          }
        else
          for (int64_t k = 0; k < t->taps; k++) {
            T *to = image + t->offset[k] + at, *from = map + q_;
            int64_t w = 0;
            for (; w + N_(L) <= length; w += N_(L))
              *(N_(mem) *)(to + w) = N_(mul)(weight[k], (V) * (N_(mem) *)(from + w), (V) * (N_(mem) *)(to + w));
            for (; w < length; w++) to[w] += weight[k] * from[w];
          }
      }
    }
    if (c->what == 1) N_(plane)(t, x, image, 1);
  }
}

static void N_(run_dots)(void **p, int64_t begin, int64_t end) {
  N_(conv_task) *t = (N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t size = c->image[0] * c->image[1] * c->image[2], count = c->outer * t->taps;
  V *sums = scratch((size_t)(count * (N_(L) + 1) + t->plane + 2 * N_(NR)) * sizeof(T));
  T *rest = (T *)(sums + count), *image = rest + count;
  for (int64_t i = begin; i < end; i++) {  // a channel in a part of the batch
    int64_t g = i % c->groups, part = i / c->groups;
    int64_t first = (part * c->n + t->parts - 1) / t->parts, next = ((part + 1) * c->n + t->parts - 1) / t->parts;
    __builtin_memset(sums, 0, (size_t)(count * (N_(L) + 1)) * sizeof(T));
    for (int64_t e = first; e < next; e++) {
      N_(plane)(t, (T *)c->x + (e * c->groups + g) * size, image, 0);
      for (int64_t o = 0; o < c->outer; o++) {
        const T *map = (const T *)c->map + ((e * c->groups + g) * c->outer + o) * t->pixels;
        FOR_RUNS_(t)
          for (int64_t k = 0; k < t->taps; k++) {
            const T *a = image + t->offset[k] + at, *b = map + q_;
            V sum = sums[o * t->taps + k];
            int64_t w = 0;
            for (; w + N_(L) <= length; w += N_(L)) sum += (V) * (const N_(mem) *)(a + w) * (V) * (const N_(mem) *)(b + w);
            sums[o * t->taps + k] = sum;
            for (; w < length; w++) rest[o * t->taps + k] += a[w] * b[w];
          }
      }
    }
    for (int64_t k = 0; k < count; k++) {
      T sum = rest[k];
      for (int j = 0; j < N_(L); j++) sum += sums[k][j];
      t->sums[(part * c->groups + g) * count + k] = sum;
    }
  }
}

static void N_(direct)(N_(conv_task) *t) {
  const pb_conv *c = t->c;
  int64_t size = c->groups * c->outer * t->taps, grain = 1 + 4096 / (t->plane * c->outer + 1);
  if (c->what < 2) {
    pb_parallel(N_(run_direct), (void **)t, c->n * c->groups, grain);
    return;
  }
  t->parts = c->groups >= 16 ? 1 : 16 / c->groups < c->n ? 16 / c->groups : c->n;
  t->sums = N_(take)(t, t->parts * size * (int64_t)sizeof(T));
  pb_parallel(N_(run_dots), (void **)t, t->parts * c->groups, 1);
  for (int64_t k = 0; k < size; k++) {
    T sum = t->sums[k];
    for (int64_t part = 1; part < t->parts; part++) sum += t->sums[part * size + k];
    ((T *)c->weight)[k] = sum;
  }
}

// Are there infinities or NaN in what the zeros of the padding are multiplied by?
static int N_(unbounded)(const N_(conv_task) *t) {
  const pb_conv *c = t->c;
  if (c->what == 1 || !(c->padding[0] | c->padding[1] | c->padding[2])) return 0;
  const T *x = c->what ? c->map : c->weight;
  int64_t n = c->groups * c->outer * (c->what ? c->n * t->pixels : t->k), i = 0;
  V zero = {0};
  for (; i + N_(L) <= n; i += N_(L)) {
    V v = (V) * (const N_(mem) *)(x + i);
    zero += v - v;
  }
  T sum = 0;
  for (int j = 0; j < N_(L); j++) sum += zero[j];
  for (; i < n; i++) sum += x[i] - x[i];
  return sum != 0;  // 0 of finite numbers, else NaN
}

// Element by element of a window, without the padding: rows of channels [begin, end) of the map, or of
// the weight.  Zeros times what is infinite would be NaN.
static void N_(run_inside)(void **p, int64_t begin, int64_t end) {
  const N_(conv_task) *t = (const N_(conv_task) *)p;
  const pb_conv *c = t->c;
  int64_t size = c->image[0] * c->image[1] * c->image[2], rows = c->groups * c->outer;
  for (int64_t i = begin; i < end; i++) {
    int64_t o = i % rows, g = o / c->outer, e = c->what ? 0 : i / rows, last = c->what ? c->n : e + 1;
    T *out = c->what ? (T *)c->weight + o * t->k : (T *)c->map + (e * rows + o) * t->pixels;
    T first = c->bias && !c->what ? ((const T *)c->bias)[o] : 0;
    for (int64_t j = 0; j < (c->what ? t->k : t->pixels); j++) out[j] = first;
    for (; e < last; e++)
      for (int64_t k = 0; k < t->k; k++) {
        int64_t tap = k % t->taps, x[3], at[3] = {tap / c->kernel[2] / c->kernel[1], tap / c->kernel[2] % c->kernel[1],
                                                  tap % c->kernel[2]};
        const T *image = (const T *)c->x + ((e * c->groups + g) * c->inner + k / t->taps) * size;
        const T *map = (const T *)c->map + (e * rows + o) * t->pixels;
        T weight = c->what ? 0 : ((const T *)c->weight)[o * t->k + k], sum = 0;
        for (int64_t q = 0; q < t->pixels; q++) {
          int64_t w[3] = {q / c->counts[2] / c->counts[1], q / c->counts[2] % c->counts[1], q % c->counts[2]};
          int in = 1;
          for (int d = 0; d < 3; d++) {
            x[d] = w[d] * c->stride[d] + at[d] * c->dilation[d] - c->padding[d];
            in &= x[d] >= 0 && x[d] < c->image[d];
          }
          if (!in) continue;
          T v = image[(x[0] * c->image[1] + x[1]) * c->image[2] + x[2]];
          if (c->what) sum += map[q] * v;
          else out[q] += weight * v;
        }
        if (c->what) out[k] += sum;
      }
  }
}

// nothing is empty: sizes of 0 do not come here
void N_(conv)(const pb_conv *c) {
  N_(conv_task) t = {0};
  N_(conv_plan)(&t, c);
  if (N_(unbounded)(&t)) pb_parallel(N_(run_inside), (void **)&t, c->groups * c->outer * (c->what ? 1 : c->n), 1);
  else if (c->inner == 1 && c->outer <= 4) N_(direct)(&t);
  else if (c->what == 0) N_(gather)(&t);
  else if (c->what == 1) N_(scatter)(&t);
  else N_(correlate)(&t);
  while (t.owns) pb_free(t.own[--t.owns]);
}
#undef KC_
#undef FOR_RUNS_
