// A caching allocator for large buffers: freed blocks are kept and handed out again, because touching
// fresh pages costs several times what reading memory does.  Blocks are 64-byte aligned; those over
// 16 MiB ask for huge pages (below that, the milliseconds a kernel may take to find one are not
// repaid).  The start of a block is shifted a little from block to block, so that arrays walked
// together do not all meet in the same cache sets.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

// Under AddressSanitizer only the bytes that were asked for may be touched: not the rest of a block, nor
// what lies before it, nor a block that is kept.  Otherwise these are nothing.
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define PB_CLOSE(data, bytes) __asan_poison_memory_region(data, bytes)
#define PB_OPEN(data, bytes) __asan_unpoison_memory_region(data, bytes)
#else
#define PB_CLOSE(data, bytes)
#define PB_OPEN(data, bytes)
#endif

enum { PB_STEPS = 32, PB_CLASSES = 48 * PB_STEPS, PB_HEADER = 64, PB_SHIFTS = 8 };
static const size_t huge_page = (size_t)2 << 20, wants_huge = (size_t)16 << 20;

typedef struct block {
  struct block *next;
  void *base;    // what malloc gave
  size_t bytes;  // usable size
  int cls;
} block;

static struct {
  pthread_mutex_t lock;
  block *free[PB_CLASSES];
  size_t kept, live, limit;
  unsigned shift;
} pool_ = {.lock = PTHREAD_MUTEX_INITIALIZER};

// `tracemalloc` counts blocks that are in use; nothing happens unless it is on.  Never called by threads
// of the pool, which must not wait for the GIL.
enum { PB_DOMAIN = 0x7062, PB_ROUND = PB_HEADER + PB_SHIFTS * 192 };
static void *counted(block *b, size_t bytes) {
  PyTraceMalloc_Track(PB_DOMAIN, (uintptr_t)b, b->bytes + PB_ROUND);
  PB_CLOSE(b + 1, PB_HEADER - sizeof *b + b->bytes);
  PB_OPEN((char *)b + PB_HEADER, bytes);
  return (char *)b + PB_HEADER;
}

// Another use of the same block, for no more than it has.
static void *used_again(void *data, size_t bytes) {
  PB_CLOSE(data, ((block *)((char *)data - PB_HEADER))->bytes);
  PB_OPEN(data, bytes);
  return data;
}

static void free_after_fork(void) { pthread_mutex_init(&pool_.lock, NULL); }

// 32 classes per power of two, from 4 KiB up: a block is at most 3 % larger than what was asked for
static int size_class(size_t bytes, size_t *rounded) {
  size_t base = 4096;
  int cls = 0;
  while (base * 2 < bytes) {
    base *= 2;
    cls += PB_STEPS;
  }
  size_t step = base / PB_STEPS;
  size_t over = bytes > base ? (bytes - base + step - 1) / step : 0;
  *rounded = base + over * step;
  return cls + (int)over;
}

static size_t keep_limit(void) {
  const char *text = getenv("PULLBACK_KEEP_BYTES");
  if (text) return strtoull(text, NULL, 10);
#ifdef __linux__
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) return (size_t)pages * (size_t)size / 4;
#endif
  return (size_t)2 << 30;
}

void *pb_alloc(size_t bytes) {
  size_t rounded;
  int cls = size_class(bytes, &rounded);
  pthread_mutex_lock(&pool_.lock);
  if (!pool_.limit) {
    pool_.limit = keep_limit();
    pthread_atfork(NULL, NULL, free_after_fork);
  }
  block *b = pool_.free[cls];
  if (b) {
    pool_.free[cls] = b->next;
    pool_.kept -= rounded;
  }
  pool_.live += rounded;
  unsigned shift = pool_.shift++ % PB_SHIFTS;
  pthread_mutex_unlock(&pool_.lock);
  if (b) return counted(b, bytes);
  size_t total = rounded + PB_ROUND;
  size_t align = total >= wants_huge ? huge_page : 64;
  void *base;
  if (posix_memalign(&base, align, total)) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // whole huge pages only: an array of 16 MiB is not to take 18 for the sake of its header
  if (align == huge_page) madvise(base, total / align * align, MADV_HUGEPAGE);
#endif
  b = (block *)((char *)base + shift * 192);
  b->base = base;
  b->bytes = rounded;
  b->cls = cls;
  return counted(b, bytes);
}

void pb_free(void *data) {
  if (!data) return;
  block *b = (block *)((char *)data - PB_HEADER);
  PyTraceMalloc_Untrack(PB_DOMAIN, (uintptr_t)b);
  PB_CLOSE(data, b->bytes);
  pthread_mutex_lock(&pool_.lock);
  pool_.live -= b->bytes;
  int keep = pool_.kept + b->bytes <= pool_.limit;
  if (keep) {
    b->next = pool_.free[b->cls];
    pool_.free[b->cls] = b;
    pool_.kept += b->bytes;
  }
  pthread_mutex_unlock(&pool_.lock);
  if (!keep) free(b->base);
}

// back to the system
void pb_release(void *data) {
  block *b = (block *)((char *)data - PB_HEADER);
  PyTraceMalloc_Untrack(PB_DOMAIN, (uintptr_t)b);
  pthread_mutex_lock(&pool_.lock);
  pool_.live -= b->bytes;
  pthread_mutex_unlock(&pool_.lock);
  free(b->base);
}

void pb_trim(void) {
  for (int c = 0; c < PB_CLASSES; c++) {
    pthread_mutex_lock(&pool_.lock);
    block *b = pool_.free[c];
    pool_.free[c] = NULL;
    for (block *q = b; q; q = q->next) pool_.kept -= q->bytes;
    pthread_mutex_unlock(&pool_.lock);
    while (b) {
      block *next = b->next;
      free(b->base);
      b = next;
    }
  }
}
void pb_alloc_info(size_t *live, size_t *kept) {
  pthread_mutex_lock(&pool_.lock);
  *live = pool_.live;
  *kept = pool_.kept;
  pthread_mutex_unlock(&pool_.lock);
}
