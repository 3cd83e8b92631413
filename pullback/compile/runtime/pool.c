// One pool of threads for every generated kernel and the matrix products.
//
// A call publishes a job, works on it itself, and waits only for workers that have joined: a worker
// that is asleep or not scheduled is never waited for, its share is taken by the others.  Every
// participant owns a contiguous range of chunks (so that data stays in its caches from kernel to kernel)
// and takes from the other ranges when its own is empty.  Results do not depend on who ran a chunk.
// Workers spin for a while after a job, then sleep on a futex.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#endif
#include "pb.h"

enum { PB_MAX_THREADS = 64, PB_SPIN_NS = 1500000 };

typedef struct {
  _Alignas(128) _Atomic int64_t next;
  int64_t end;
} pb_range;

static struct {
  pb_body body;
  void **p;
  int64_t grain;
  int parts;
  pb_range range[PB_MAX_THREADS];
} job;

static _Alignas(128) _Atomic uint32_t epoch;   // counts jobs; workers sleep on it
static _Alignas(128) _Atomic int open_job;     // 1 while the job may be joined
static _Alignas(128) _Atomic int joined;       // workers inside the job
static _Alignas(128) _Atomic int sleepers;
static _Atomic int busy;                       // a caller owns the pool
static int threads = 0, started = 0;
static __thread int inside;                    // nested calls run on the caller

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef __linux__
static void sleep_on(uint32_t seen) {
  syscall(SYS_futex, &epoch, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void wake_all(void) { syscall(SYS_futex, &epoch, FUTEX_WAKE_PRIVATE, PB_MAX_THREADS, NULL, NULL, 0); }
#else
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static void sleep_on(uint32_t seen) {
  pthread_mutex_lock(&gate);
  while (atomic_load(&epoch) == seen) pthread_cond_wait(&bell, &gate);
  pthread_mutex_unlock(&gate);
}
static void wake_all(void) {
  pthread_mutex_lock(&gate);
  pthread_cond_broadcast(&bell);
  pthread_mutex_unlock(&gate);
}
#endif

static void take_part(int who) {
  for (int i = 0; i < job.parts; i++) {
    pb_range *r = &job.range[(who + i) % job.parts];
    while (atomic_load_explicit(&r->next, memory_order_relaxed) < r->end) {
      int64_t begin = atomic_fetch_add(&r->next, job.grain);
      if (begin >= r->end) break;
      int64_t end = begin + job.grain < r->end ? begin + job.grain : r->end;
      job.body(job.p, begin, end);
    }
  }
}

static void *worker(void *arg) {
  int who = (int)(intptr_t)arg;
  uint32_t seen = atomic_load(&epoch);
  inside = 1;
  for (;;) {
    int64_t give_up = 0;
    for (uint32_t spins = 0; atomic_load_explicit(&epoch, memory_order_acquire) == seen; spins++) {
      relax();
      if (spins % 256 != 255) continue;
      int64_t now = now_ns();
      if (!give_up) give_up = now + PB_SPIN_NS;
      if (now < give_up) continue;
      atomic_fetch_add(&sleepers, 1);
      sleep_on(seen);
      atomic_fetch_sub(&sleepers, 1);
      give_up = 0;
    }
    seen = atomic_load(&epoch);
    atomic_fetch_add(&joined, 1);
    // the caller closes the job before it looks at `joined`, so one of the two sees the other
    if (atomic_load(&open_job) && who < job.parts) take_part(who);
    atomic_fetch_sub(&joined, 1);
  }
  return NULL;
}

static void after_fork(void) {
  started = 0;
  atomic_store(&busy, 0);
  atomic_store(&open_job, 0);
  atomic_store(&joined, 0);
  atomic_store(&sleepers, 0);
  inside = 0;
}

static int default_threads(void) {
  const char *text = getenv("PULLBACK_NUM_THREADS");
  int wanted = text ? atoi(text) : 0;
  if (wanted > 0) return wanted < PB_MAX_THREADS ? wanted : PB_MAX_THREADS;
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int n = CPU_COUNT(&set);
    return n < PB_MAX_THREADS ? n : PB_MAX_THREADS;
  }
#endif
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n < PB_MAX_THREADS ? (int)n : PB_MAX_THREADS;
}

int pb_get_threads(void) {
  if (!threads) threads = default_threads();
  return threads;
}
void pb_set_threads(int n) { threads = n < 1 ? 1 : n > PB_MAX_THREADS ? PB_MAX_THREADS : n; }

static void start_workers(int wanted) {
  static int registered = 0;
  if (!registered) pthread_atfork(NULL, NULL, after_fork);
  registered = 1;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, 8 << 20);
  for (; started < wanted; started++) {
    pthread_t t;
    if (pthread_create(&t, &attr, worker, (void *)(intptr_t)(started + 1))) break;
  }
  pthread_attr_destroy(&attr);
}

void pb_parallel(pb_body body, void **p, int64_t chunks, int64_t grain) {
  if (grain < 1) grain = 1;
  int parts = pb_get_threads();
  if (chunks < parts) parts = (int)chunks;
  if (parts <= 1 || chunks <= grain || inside || atomic_exchange(&busy, 1)) {
    body(p, 0, chunks);
    return;
  }
  if (started < parts - 1) start_workers(parts - 1);
  job.body = body;
  job.p = p;
  job.grain = grain;
  job.parts = parts;
  for (int i = 0; i < parts; i++) {
    atomic_store_explicit(&job.range[i].next, chunks * i / parts, memory_order_relaxed);
    job.range[i].end = chunks * (i + 1) / parts;
  }
  atomic_store(&open_job, 1);
  atomic_fetch_add(&epoch, 1);
  if (atomic_load(&sleepers)) wake_all();
  inside = 1;
  take_part(0);
  inside = 0;
  atomic_store(&open_job, 0);
  while (atomic_load(&joined)) relax();
  atomic_store(&busy, 0);
}
