// The matrix product and the convolution of one element type as a library of its own, compiled when a graph first needs
// it: the register tiles take gcc longer than all the rest of the runtime.  PB_DOUBLE chooses the type.
#include <stdint.h>
#include <stdlib.h>
#include "pb.h"

#if defined(__AVX512F__)
#define PB_VB 64
#define MR 14
#elif defined(__AVX__)
#define PB_VB 32
#define MR 6
#else
#define PB_VB 16
#define MR 6
#endif

// memory of this thread that lives until the next call; grows, is never given back
static void *scratch(size_t bytes) {
  static __thread void *space;
  static __thread size_t size;
  if (bytes > size) {
    free(space);
    size = (bytes + 65535) / 4096 * 4096;
    space = aligned_alloc(64, size);
    if (!space) abort();
  }
  return space;
}

static const pb_support *base;
#define pb_parallel base->parallel
#define pb_get_threads base->threads
#define pb_alloc base->alloc
#define pb_free base->free

#define JOIN_(a, b) a##b
#if PB_DOUBLE
#define T double
#define N_(name) JOIN_(d_, name)
#define PB_SIZE 8
typedef int64_t N_(ivec) __attribute__((vector_size(PB_VB)));
#else
#define T float
#define N_(name) JOIN_(s_, name)
#define PB_SIZE 4
typedef int32_t N_(ivec) __attribute__((vector_size(PB_VB)));
#endif
typedef T N_(vec) __attribute__((vector_size(PB_VB)));
typedef T N_(mem) __attribute__((vector_size(PB_VB), aligned(PB_SIZE), may_alias));
#define V N_(vec)
#include "gemm.h"
#include "conv.h"

void pb_product_bind(const pb_support *support) { base = support; }
void pb_product(const pb_gemm *g) { N_(gemm)(g); }
void pb_convolution(const pb_conv *c) { N_(conv)(c); }
