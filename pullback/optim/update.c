/* Updates of the optimizers in one pass over memory; see update.py for what they compute.
 * Each function takes `count` arrays at once, given by their addresses and lengths. */

#include <math.h>
#include <stddef.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#define DEFINE(REAL, SQRT, NAME)                                                                   \
    void sgd_##NAME(size_t count, REAL **params, REAL **grads, const size_t *sizes, double step)   \
    {                                                                                              \
        for (size_t k = 0; k < count; k++) {                                                       \
            REAL *restrict p = params[k];                                                          \
            const REAL *restrict g = grads[k];                                                     \
            const REAL s = (REAL)step;                                                             \
            for (size_t i = 0; i < sizes[k]; i++)                                                  \
                p[i] += s * g[i];                                                                  \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* numbers: per array the step size and the floor of the denominator;                          \
     * sign -1 maximizes; decay is added to the gradient, keep multiplies the parameter */         \
    void adam_##NAME(size_t count, REAL **params, REAL **grads, REAL **averages, REAL **squares,   \
                     const size_t *sizes, const double *numbers, double beta1, double beta2,       \
                     double sign, double decay, double keep)                                       \
    {                                                                                              \
        const REAL a = (REAL)(1 - beta1), b = (REAL)beta2, c = (REAL)(1 - beta2);                  \
        const REAL sg = (REAL)sign, wd = (REAL)decay, kp = (REAL)keep;                             \
        for (size_t k = 0; k < count; k++) {                                                       \
            REAL *restrict p = params[k], *restrict m = averages[k], *restrict v = squares[k];     \
            const REAL *restrict g = grads[k];                                                     \
            const REAL size = (REAL)numbers[2 * k], floor = (REAL)numbers[2 * k + 1];              \
            for (size_t i = 0; i < sizes[k]; i++) {                                                \
                const REAL gi = sg * g[i] + wd * p[i];                                             \
                const REAL mi = m[i] + a * (gi - m[i]);                                            \
                const REAL vi = b * v[i] + c * (gi * gi);                                          \
                m[i] = mi;                                                                         \
                v[i] = vi;                                                                         \
                p[i] = kp * p[i] - size * (mi / (SQRT(vi) + floor));                               \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE(float, sqrtf, f32)
DEFINE(double, sqrt, f64)
