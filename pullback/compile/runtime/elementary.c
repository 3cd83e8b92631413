// Elementary functions of float arrays for eager execution: computed in double precision to 1e-12 and
// rounded once, so that a result differs from the rightly rounded one in one place of a million.
// A library of its own: `compile/elementary_loops.py` gets NumPy ufuncs from it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>
#include <fenv.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define PB_L 8
#else
#define PB_L 4
#endif
#include "vec.h"
#include "vmath.h"

#define MAGIC 0x1.8p52  // added to a number below 2^51 it rounds that, and leaves it in its low bits

#if PB_L == 8 && !defined(__clang__)  // gcc makes halves of these conversions
INLINE VD widened(VF x) { return __builtin_ia32_cvtps2pd512_mask(x, (VD){}, -1, 4); }
INLINE VF rounded(VD y) { return __builtin_ia32_cvtpd2ps512_mask(y, (VF){}, -1, 4); }
#else
INLINE VD widened(VF x) { return __builtin_convertvector(x, VD); }
INLINE VF rounded(VD y) { return __builtin_convertvector(y, VF); }
#endif

// ---- exp, exp2, expm1, sigmoid, tanh ------------------------------------------------------------

// (e^r - 1) / r on |r| <= ln2 / 2
INLINE VD slope(VD r) {
  VD p = r * 2.485969439475207e-05 + 1.9899390183679232e-04;
  p = p * r + 1.388885390994504e-03;
  p = p * r + 8.333298344023092e-03;
  p = p * r + 4.166666671929568e-02;
  p = p * r + 1.666666671931248e-01;
  p = p * r + .5;
  return p * r + 1.;
}
INLINE VD times_power(VD p, VD m) { return (VD)((VL)p + ((VL)m << 52)); }
// beyond 110 results are 0 or infinite as floats; as doubles they are numbers like others
INLINE VD wide_exp(VF x) {
  VD c = widened(FN(clamp_f)(x, -110.f, 110.f));
  VD m = c * 1.4426950408889634 + MAGIC, r = (m - MAGIC) * -.6931471805599453 + c;
  return times_power(slope(r) * r + 1., m);
}
INLINE VD wide_expm1(VF x) {
  VD c = widened(x), m = c * 1.4426950408889634 + MAGIC, r = (m - MAGIC) * -.6931471805599453 + c;
  VD scale = times_power(FN(splat_d)(1.), m);
  return slope(r) * r * scale + (scale - 1.);
}
INLINE VF to_exp(VF x) { return rounded(wide_exp(x)); }
INLINE VF to_exp2(VF x) {
  VD c = widened(FN(clamp_f)(x, -160.f, 160.f)), m = c + MAGIC;
  VD r = (c - (m - MAGIC)) * .6931471805599453;
  return rounded(times_power(slope(r) * r + 1., m));
}
INLINE VF to_expm1(VF x) {
  return FN(copysign_f)(rounded(wide_expm1(FN(clamp_f)(x, -110.f, 110.f))), x);
}
INLINE VF to_sigmoid(VF x) { return rounded(1. / (wide_exp(-x) + 1.)); }
INLINE VF to_tanh(VF x) {
  VD t = wide_expm1(2.f * FN(most_f)(FN(abs_f)(x), 10.f));
  return FN(copysign_f)(rounded(t / (t + 2.)), x);
}

// of |x|: double precision has room for e^110
INLINE VF to_sinh(VF x) {
  VD t = wide_expm1(FN(most_f)(FN(abs_f)(x), 110.f));
  return FN(copysign_f)(rounded((t + t / (t + 1.)) * .5), x);
}
INLINE VF to_cosh(VF x) {
  VD t = wide_exp(FN(abs_f)(x));
  return rounded((t + 1. / t) * .5);
}

// ---- log, log2, log10, log1p --------------------------------------------------------------------

// An eighth of a power of two from .71875 on has a factor that takes it to the neighbourhood of 1, and
// the logarithm of that. What is near 1 stays there, so that small logarithms keep all digits.
static const double factors[8] = {1.3333330154418945, 1.230769157409668,  1.1428565979003906,
                                  1.066666603088379,  1.0,                0.8888883590698242,
                                  0.7999992370605469, 0.7272720336914062};
static const double logarithms[8] = {-0.2876818340331734,  -0.20763930517359794, -0.13353091578725074,
                                     -0.06453846153292463, 0.0,                  0.11778363170300885,
                                     0.22314450498898092,  0.31845468479330574};
// by the lowest three bits of `at`
INLINE VD looked_up(const double *table, VL at) {
#if PB_L == 8 && !defined(__clang__)
  return __builtin_shuffle(FN(load_d)(table), at);
#else
  VD v;
  for (int k = 0; k < PB_L; k++) v[k] = table[at[k] & 7];
  return v;
#endif
}
// x = 2^n factor (1 + f), and the logarithm of the factor; x is positive and finite
INLINE VD factored(VD x, VD *n, VD *known) {
  const int64_t first = 0x3fe7000000000000LL;  // .71875
  VL bits = (VL)x - first, at = bits >> 49;
  VD m = (VD)((bits & 0x000fffffffffffffLL) + first);
  *n = (VD)((bits >> 52) + 0x4338000000000000LL) - MAGIC;
  *known = looked_up(logarithms, at);
  return m * looked_up(factors, at) - 1.;
}
// log(1 + f) + known
INLINE VD logarithm(VD f, VD known) {
  VD p = f * -1.2405060718305802e-01 + 1.4356031298669963e-01;
  p = p * f - 1.6667273827487436e-01;
  p = p * f + 1.9999872615518755e-01;
  p = p * f - 2.4999999260639993e-01;
  p = p * f + 3.3333333391246620e-01;
  p = p * f - 5.0000000000120730e-01;
  return p * f * f + f + known;
}
// what is not positive and finite has its own logarithm
INLINE VF of_all(VF x, VF out) {
  out = FN(sel_f)(x < PB_INF, out, x);
  out = FN(sel_f)(x == 0.f, FN(splat_f)(-PB_INF), out);
  return FN(sel_f)(x < 0.f, FN(splat_f)(PB_NAN), out);
}
#define LOGARITHM(name, of_two, unit)                                                              \
  INLINE VF name(VF x) {                                                                           \
    VD n, known, f = factored(widened(x), &n, &known), l = logarithm(f, known);                    \
    return of_all(x, rounded(n * of_two + l * unit));                                              \
  }
LOGARITHM(to_log, .6931471805599453, 1.)
LOGARITHM(to_log2, 1., 1.4426950408889634)
LOGARITHM(to_log10, .3010299956639812, .4342944819032518)
INLINE VD wide_log1p(VD x) {
  VD u = x + 1., n, known, f = factored(u, &n, &known);
  VD l = logarithm(f + (x - (u - 1.)), known);  // what the sum has lost counts where u is near 1
  return n * .6931471805599453 + l;
}
INLINE VF to_log1p(VF x) {
  return of_all(x + 1.f, FN(copysign_f)(rounded(wide_log1p(widened(x))), x));
}
INLINE VF to_asinh(VF x) {
  VD a = FN(abs_d)(widened(x)), s = a * a;
  VF out = rounded(wide_log1p(a + s / (FN(sqrt_d)(s + 1.) + 1.)));
  return FN(copysign_f)(FN(sel_f)(FN(abs_f)(x) < PB_INF, out, x), x);
}
INLINE VF to_acosh(VF x) {
  VD d = widened(x) - 1.;
  VF out = rounded(wide_log1p(d + FN(sqrt_d)(d * (d + 2.))));
  return of_all(FN(sel_f)(x < 1.f, FN(splat_f)(-1.f), x), out);
}
INLINE VF to_atanh(VF x) {
  VD a = FN(abs_d)(widened(x));
  VF rest = 1.f - FN(abs_f)(x), out = rounded(wide_log1p((a + a) / (1. - a)) * .5);
  out = FN(sel_f)(rest == 0.f, FN(splat_f)(PB_INF), out);
  out = FN(sel_f)(rest < 0.f, FN(splat_f)(PB_NAN), out);
  return FN(copysign_f)(FN(sel_f)(x == x, out, x), x);
}

// ---- sin, cos -----------------------------------------------------------------------------------

// Quarters of a turn are exact as products: 33 bits and 20. Beyond 1e6 libm takes over (rare).
INLINE VD turned(VD x, VL *quarters) {
  VD m = x * .6366197723675814 + MAGIC, n = m - MAGIC;
  *quarters = (VL)m;
  return n * -6.07710050650619224932e-11 + (n * -1.57079632673412561417 + x);
}
INLINE VD sine(VD r) {
  VD s = r * r, p = s * -2.4805587179980646e-08 + 2.7555990399839905e-06;
  p = p * s - 1.9841266915235040e-04;
  p = p * s + 8.3333333310774220e-03;
  p = p * s - 1.6666666666663882e-01;
  return p * s * r + r;
}
INLINE VD cosine(VD r) {
  VD s = r * r, p = s * 2.070056539736993e-09 - 2.755636931675049e-07;
  p = p * s + 2.4801585209738397e-05;
  p = p * s - 1.3888888887276056e-03;
  p = p * s + 4.1666666666664680e-02;
  p = p * s - .5;
  return p * s + 1.;
}
#define OF_FAR(function)                                                                           \
  VI far = FN(abs_f)(x) > 1e6f;                                                                    \
  if (__builtin_expect(FN(any)(far), 0))                                                           \
    for (int k = 0; k < PB_L; k++)                                                                 \
      if (far[k]) out[k] = (float)function(x[k]);
#define TURNS(name, at_odd, at_even, sign, function)                                               \
  INLINE VF name(VF x) {                                                                           \
    VL q;                                                                                          \
    VD r = turned(widened(x), &q), y = FN(sel_dl)((q & 1) != 0, at_odd(r), at_even(r));            \
    VF out = rounded((VD)((VL)y ^ ((sign & 2) << 62)));                                            \
    OF_FAR(function)                                                                               \
    return out;                                                                                    \
  }
TURNS(sine_of_all, cosine, sine, q, __builtin_sin)
TURNS(to_cos, sine, cosine, (q + 1), __builtin_cos)
INLINE VF to_sin(VF x) { return FN(sel_f)(x == 0.f, x, sine_of_all(x)); }  // keeps -0
INLINE VF to_tan(VF x) {
  VL q;
  VD r = turned(widened(x), &q), s = sine(r), c = cosine(r);
  VL odd = (q & 1) != 0;
  VF out = rounded(FN(sel_dl)(odd, -c, s) / FN(sel_dl)(odd, s, c));
  OF_FAR(__builtin_tan)
  return FN(sel_f)(x == 0.f, x, out);
}

// ---- asin, acos ---------------------------------------------------------------------------------

// The angle whose sine is a, or half of the rest to a right angle
INLINE VD angle(VD a, VL steep) {
  VD s = FN(sel_dl)(steep, .5 - .5 * a, a * a), z = FN(sel_dl)(steep, FN(sqrt_d)(s), a);
  VD p = s * 0.027887844469954973 - 0.006841641283170435;
  p = p * s + 0.015454961727659502;
  p = p * s + 0.010286921772543867;
  p = p * s + 0.01414139468157582;
  p = p * s + 0.017337146075635457;
  p = p * s + 0.022373012954292382;
  p = p * s + 0.03038191738295057;
  p = p * s + 0.044642857580550685;
  p = p * s + 0.0749999999972504;
  p = p * s + 0.16666666666666952;
  return p * s * z + z;
}
INLINE VF to_asin(VF x) {
  VD a = FN(abs_d)(widened(x));
  VL steep = a > .5;
  VD y = angle(a, steep);
  return FN(copysign_f)(rounded(FN(sel_dl)(steep, 1.5707963267948966 - 2. * y, y)), x);
}
INLINE VF to_acos(VF x) {
  VD c = widened(x), a = FN(abs_d)(c);
  VL steep = a > .5;
  VD y = angle(a, steep), lying = 1.5707963267948966 - FN(copysign_d)(y, c);
  y = FN(sel_dl)(c < 0., 3.141592653589793 - 2. * y, 2. * y);
  return rounded(FN(sel_dl)(steep, y, lying));
}

// ---- loops and ufuncs ---------------------------------------------------------------------------

typedef void loop(const float *x, float *y, int64_t n);
#define BY_DOUBLE(name) INLINE VF to_##name(VF x) { return rounded(FN(name##_d)(widened(x))); }
BY_DOUBLE(atan)
BY_DOUBLE(erf)
#define FUNCTION(name)                                                                             \
  static void name##_loop(const float *x, float *y, int64_t n) {                                   \
    int64_t i = 0;                                                                                 \
    for (; i + PB_L <= n; i += PB_L) FN(store_f)(y + i, to_##name(FN(load_f)(x + i)));             \
    if (i < n) FN(storen_f)(y + i, to_##name(FN(loadn_f)(x + i, (int)(n - i))), (int)(n - i));     \
  }
#define ALL(make)                                                                                  \
  make(exp) make(exp2) make(expm1) make(sigmoid) make(tanh) make(sinh) make(cosh) make(log)        \
  make(log2) make(log10) make(log1p) make(sin) make(cos) make(tan) make(asin) make(acos)           \
  make(atan) make(asinh) make(acosh) make(atanh) make(erf)
ALL(FUNCTION)

// What vectors compute beside the wanted must not show in the processor's flags: NumPy would warn.
#if defined(__x86_64__)
#define QUIETLY(work)                                                                              \
  {                                                                                                \
    unsigned flags = __builtin_ia32_stmxcsr();                                                     \
    work;                                                                                          \
    __builtin_ia32_ldmxcsr(flags);                                                                 \
  }
#else
#define QUIETLY(work)                                                                              \
  {                                                                                                \
    fexcept_t flags;                                                                               \
    fegetexceptflag(&flags, FE_ALL_EXCEPT);                                                        \
    work;                                                                                          \
    fesetexceptflag(&flags, FE_ALL_EXCEPT);                                                        \
  }
#endif

enum { PIECE = 256 };
static void strided(loop *run, char *from, npy_intp step, char *to, npy_intp other, npy_intp n) {
  float piece[PIECE];
  for (npy_intp begin = 0; begin < n; begin += PIECE) {
    int count = (int)(n - begin < PIECE ? n - begin : PIECE);
    for (int k = 0; k < count; k++) memcpy(piece + k, from + (begin + k) * step, sizeof *piece);
    run(piece, piece, count);
    for (int k = 0; k < count; k++) memcpy(to + (begin + k) * other, piece + k, sizeof *piece);
  }
}
static void over_array(char **arrays, const npy_intp *sizes, const npy_intp *steps, void *function) {
  loop *run = (loop *)function;
  int dense = steps[0] == sizeof(float) && steps[1] == sizeof(float);
  QUIETLY(if (dense) run((const float *)arrays[0], (float *)arrays[1], sizes[0]);
          else strided(run, arrays[0], steps[0], arrays[1], steps[1], sizes[0]))
}

static const struct {
  const char *name;
  loop *run;
} known[] = {
#define NAMED(name) {#name, name##_loop},
    ALL(NAMED)};
enum { COUNT = sizeof known / sizeof *known };
static PyUFuncGenericFunction loops[1] = {(PyUFuncGenericFunction)over_array};
static const char types[2] = {NPY_FLOAT, NPY_FLOAT};
static void *data[COUNT][1];

// {name: ufunc}
PyObject *pb_elementary_functions(void) {
  import_array();
  import_umath();
  PyObject *all = PyDict_New();
  for (int k = 0; all && k < COUNT; k++) {
    data[k][0] = (void *)known[k].run;
    PyObject *made = PyUFunc_FromFuncAndData(loops, data[k], (char *)types, 1, 1, 1, PyUFunc_None,
                                             known[k].name, "rightly rounded", 0);
    if (!made || PyDict_SetItemString(all, known[k].name, made)) Py_CLEAR(all);
    Py_XDECREF(made);
  }
  return all;
}
