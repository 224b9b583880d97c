/* A pool of POSIX threads that shares out numbered pieces of work. */
#ifndef LMC_POOL_H
#define LMC_POOL_H
#include <stdint.h>

#define POOL_MOST_THREADS 256

typedef void (*pool_piece)(void *argument, int64_t index, int thread);

/* Calls piece(argument, i, t) for every i in [0, count), on up to `threads` threads, the caller's among them; `t` is below
 * `threads` and different in concurrent calls. Returns when all are done. One run at a time: a second caller waits.
 * A process made by fork has a pool of its own. */
void pool_run(pool_piece piece, void *argument, int64_t count, int threads);
#endif
