// Elementary functions on vectors, inline, without fast-math: NaN, infinities, signed zeros and
// subnormal results come out right, and errors stay within a few units in the last place (ulp);
// tests/compile/test_vmath.py holds the bounds.  Included after vec.h, once per lane count.

INLINE VF FN(abs_f)(VF x) { return (VF)((VI)x & 0x7fffffff); }
INLINE VD FN(abs_d)(VD x) { return (VD)((VL)x & 0x7fffffffffffffffLL); }
INLINE VF FN(copysign_f)(VF x, VF s) { return (VF)(((VI)x & 0x7fffffff) | ((VI)s & (int)0x80000000)); }
INLINE VD FN(copysign_d)(VD x, VD s) {
  return (VD)(((VL)x & 0x7fffffffffffffffLL) | ((VL)s & (int64_t)0x8000000000000000ULL));
}
#define PB_LANEWISE(name, V, fn)                                                                   \
  INLINE V FN(name)(V x) {                                                                         \
    for (int k = 0; k < PB_L; k++) x[k] = fn(x[k]);                                                \
    return x;                                                                                      \
  }
PB_LANEWISE(rint_f, VF, __builtin_rintf)
PB_LANEWISE(rint_d, VD, __builtin_rint)
PB_LANEWISE(floor_f, VF, __builtin_floorf)
PB_LANEWISE(floor_d, VD, __builtin_floor)
PB_LANEWISE(ceil_f, VF, __builtin_ceilf)
PB_LANEWISE(ceil_d, VD, __builtin_ceil)
PB_LANEWISE(trunc_f, VF, __builtin_truncf)
PB_LANEWISE(trunc_d, VD, __builtin_trunc)
PB_LANEWISE(sqrt_f, VF, __builtin_sqrtf)
PB_LANEWISE(sqrt_d, VD, __builtin_sqrt)
INLINE VF FN(rsqrt_f)(VF x) { return 1.f / FN(sqrt_f)(x); }
INLINE VD FN(rsqrt_d)(VD x) { return 1. / FN(sqrt_d)(x); }

// No more than a bound, no less than one; a NaN goes through. The processor's minimum gives its second
// operand where one is a NaN.
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 16
INLINE VF FN(most_f)(VF x, float hi) {
  return __builtin_ia32_minps512_mask(FN(splat_f)(hi), x, x, -1, 4);
}
INLINE VF FN(least_f)(VF x, float lo) {
  return __builtin_ia32_maxps512_mask(FN(splat_f)(lo), x, x, -1, 4);
}
#elif defined(__AVX__) && !defined(__clang__) && PB_L == 8
INLINE VF FN(most_f)(VF x, float hi) { return __builtin_ia32_minps256(FN(splat_f)(hi), x); }
INLINE VF FN(least_f)(VF x, float lo) { return __builtin_ia32_maxps256(FN(splat_f)(lo), x); }
#else
INLINE VF FN(most_f)(VF x, float hi) { return FN(sel_f)(x > hi, FN(splat_f)(hi), x); }
INLINE VF FN(least_f)(VF x, float lo) { return FN(sel_f)(x < lo, FN(splat_f)(lo), x); }
#endif
// a * b + c, rounded once where the processor can: for what a rounding has lost. (That of an expression
// is up to the compiler, and it keeps a product that it knows already.)
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 16
INLINE VF FN(fma_f)(VF a, VF b, VF c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4); }
#elif defined(__FMA__) && !defined(__clang__) && PB_L == 8
INLINE VF FN(fma_f)(VF a, VF b, VF c) { return __builtin_ia32_vfmaddps256(a, b, c); }
#elif (defined(__FMA__) || defined(__aarch64__)) && !defined(__clang__)
INLINE VF FN(fma_f)(VF a, VF b, VF c) {
  for (int k = 0; k < PB_L; k++) a[k] = __builtin_fmaf(a[k], b[k], c[k]);
  return a;
}
#else
INLINE VF FN(fma_f)(VF a, VF b, VF c) { return a * b + c; }
#endif
INLINE VF FN(clamp_f)(VF x, float lo, float hi) { return FN(most_f)(FN(least_f)(x, lo), hi); }
INLINE VD FN(clamp_d)(VD x, double lo, double hi) {
  x = FN(sel_dl)(x < lo, FN(splat_d)(lo), x);
  return FN(sel_dl)(x > hi, FN(splat_d)(hi), x);
}

// is a mask true anywhere?
INLINE int FN(any)(VI m) {
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 16
  return __builtin_ia32_ptestmd512(m, m, -1) != 0;
#elif defined(__AVX__) && !defined(__clang__) && PB_L == 8
  return __builtin_ia32_movmskps256((VF)m) != 0;
#else
  int found = 0;
  for (int k = 0; k < PB_L; k++) found |= m[k];
  return found != 0;
#endif
}

// ---- exp, expm1 ---------------------------------------------------------------------------------

// p times 2^n. In parts, the scale is right for subnormal and overflowing results.
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 16
INLINE VF FN(scale_f)(VF p, VF n) { return __builtin_ia32_scalefps512_mask(p, n, p, -1, 4); }
#else
INLINE VF FN(scale_f)(VF p, VF n) {
  VI k = __builtin_convertvector(n, VI), h = k >> 1;
  return p * (VF)((h + 127) << 23) * (VF)((k - h + 127) << 23);
}
#endif
#if defined(__AVX512F__) && !defined(__clang__) && PB_L == 8
INLINE VD FN(scale_d)(VD p, VD n) { return __builtin_ia32_scalefpd512_mask(p, n, p, -1, 4); }
#else
INLINE VD FN(scale_d)(VD p, VD n) {
  VL k = __builtin_convertvector(n, VL), h = k >> 1;
  return p * (VD)((h + 1023) << 52) * (VD)((k - h + 1023) << 52);
}
#endif

// Within one unit: inside of other functions, and where many are added or multiplied. x = n ln 2 + r
INLINE VF FN(swift_exp_f)(VF x) {
  VF c = FN(clamp_f)(x, -104.f, 89.f);
  VF n = FN(rint_f)(c * 1.44269504088896341f);
  VF r = n * -0.693359375f + c;
  r = n * 2.12194440e-4f + r;
  VF p = r * 1.3811662300e-3f + 8.3701348089e-3f;
  p = p * r + 4.1668528276e-2f;
  p = p * r + 1.6666508717e-1f;
  p = p * r + 4.9999992630e-1f;
  p = p * (r * r) + r;
  return FN(scale_f)(p + 1.f, n);
}

// x = n ln 2 + r + low
INLINE VF FN(exp_rest_f)(VF x, VF *n, VF *low) {
  *n = FN(rint_f)(x * 1.44269504088896341f);
  VF a = *n * -0.693359375f + x, c = FN(splat_f)(2.12194440e-4f), r = FN(fma_f)(*n, c, a);
  *low = FN(fma_f)(*n, c, a - r);
  return r;
}
// e^r - 1 - r + low
INLINE VF FN(exp_tail_f)(VF r, VF low) {
  VF s = r * r, p = r * 1.988277363e-4f + 1.392625039e-3f;
  p = p * r + 8.333320729e-3f;
  p = p * r + 4.166655242e-2f;
  p = p * r + 1.666666716e-1f;
  return s * .5f + (p * (s * r) + low);
}
INLINE VF FN(exp_f)(VF x) {
  VF n, low, r = FN(exp_rest_f)(FN(clamp_f)(x, -104.f, 89.f), &n, &low), h = r + 1.f;
  return FN(scale_f)(h + FN(exp_tail_f)(r, low * h + (r - (h - 1.f))), n);
}
INLINE VF FN(exp2_f)(VF x) {
  VF c = FN(clamp_f)(x, -151.f, 129.f), n = FN(rint_f)(c), d = c - n, s = d * d;
  VF ln2 = FN(splat_f)(.693147182f), r = d * ln2, h = r + 1.f;
  VF low = d * -1.904654300e-9f + (FN(fma_f)(d, ln2, -r) + (r - (h - 1.f)));
  VF p = d * 1.528458779e-5f + 1.544490078e-4f;
  p = p * d + 1.333353808e-3f;
  p = p * d + 9.618103504e-3f;
  p = p * d + 5.550410971e-2f;
  return FN(scale_f)(h + (s * 2.402265072e-1f + (p * (s * d) + low)), n);
}

// (e^r - 1 - r) / r^2 on |r| <= ln2 / 2
INLINE VD FN(exp_tail_d)(VD r) {
  VD p = r * 1.6059043836821615e-10 + 2.08767569878681e-09;
  p = p * r + 2.505210838544172e-08;
  p = p * r + 2.755731922398589e-07;
  p = p * r + 2.7557319223985893e-06;
  p = p * r + 2.48015873015873e-05;
  p = p * r + 1.984126984126984e-04;
  p = p * r + 1.388888888888889e-03;
  p = p * r + 8.333333333333333e-03;
  p = p * r + 4.166666666666667e-02;
  p = p * r + 1.6666666666666666e-01;
  return p * r + 0.5;
}
INLINE VD FN(exp_d)(VD x) {
  VD c = FN(clamp_d)(x, -746., 710.);
  VD n = FN(rint_d)(c * 1.4426950408889634);
  VD r = n * -6.93147180369123816490e-01 + c;
  r = n * -1.90821492927058770002e-10 + r;
  VD p = FN(exp_tail_d)(r) * (r * r) + r;
  return FN(scale_d)(p + 1., n);
}

INLINE VD FN(swift_exp_d)(VD x) { return FN(exp_d)(x); }
INLINE VD FN(exp2_d)(VD x) {
  VD c = FN(clamp_d)(x, -1080., 1030.), n = FN(rint_d)(c), r = (c - n) * .6931471805599453;
  return FN(scale_d)(FN(exp_tail_d)(r) * (r * r) + r + 1., n);
}

// (e^x - 1) / 4, which does not overflow where that or half of that is a number; *near is e^x - 1
// where n is 0, which keeps all digits of small numbers
INLINE VF FN(expm1_quarter_f)(VF x, VI *is_near, VF *near) {
  VF n, low, r = FN(exp_rest_f)(x, &n, &low);
  VF tail = FN(exp_tail_f)(r, low * r + (FN(fma_f)(r, r, -(r * r)) * .5f + low));
  // 2^n (r + tail) + (2^n - 1)
  VI k = __builtin_convertvector(n, VI);
  VF scale = (VF)((k + 125) << 23), most = scale - .25f, h = FN(fma_f)(r, scale, most);
  *is_near = n == 0.f;
  *near = r + tail;
  return h + (tail * scale + (FN(fma_f)(r, scale, most - h) + (scale - most - .25f)));
}
INLINE VF FN(expm1_f)(VF x) {
  VI is_near;
  VF near, y = FN(expm1_quarter_f)(FN(clamp_f)(x, -30.f, 89.f), &is_near, &near) * 4.f;
  return FN(sel_f)(x == 0.f, x, FN(sel_f)(is_near, near, y));  // keeps -0
}
INLINE VD FN(expm1_d)(VD x) {
  VD c = FN(clamp_d)(x, -60., 710.);
  VD n = FN(rint_d)(c * 1.4426950408889634);
  VD r = n * -6.93147180369123816490e-01 + c;
  r = n * -1.90821492927058770002e-10 + r;
  VD p = FN(exp_tail_d)(r) * (r * r) + r;
  VL k = __builtin_convertvector(n, VL);
  VD half = (VD)((k + 1022) << 52);
  VD y = (p * half + (half - .5)) * 2.;
  y = FN(sel_dl)(n == 0., p, y);
  return FN(sel_dl)(x == 0., x, y);
}

// ---- log, log1p ---------------------------------------------------------------------------------

// y = 2^n (1 + f), where 1 + f is between sqrt(1/2) and sqrt(2); y is positive
INLINE VF FN(mantissa_f)(VF y, VI *n) {
  VI bits = (VI)y - 0x3f3504f3;
  *n = bits >> 23;
  return (VF)((bits & 0x007fffff) + 0x3f3504f3) - 1.f;
}
// log(1 + f) - f + f^2 / 2 + low; square: f^2 in two parts, the small one is in the result
INLINE VF FN(log_tail_f)(VF f, VF *square, VF low) {
  VF s = *square = f * f, p = f * 6.971681118e-02f - 1.147983670e-01f;
  p = p * f + 1.168544292e-01f;
  p = p * f - 1.242567599e-01f;
  p = p * f + 1.424905360e-01f;
  p = p * f - 1.666780263e-01f;
  p = p * f + 2.000071555e-01f;
  p = p * f - 2.499999702e-01f;
  p = p * f + 3.333333135e-01f;
  return p * f * s + (FN(fma_f)(f, f, -s) * -.5f + low);
}
// f + n two + tail - square / 2, rounded once; the sum of the first two is larger than the others
INLINE VF FN(log_sum_f)(VF f, VF n, float two, VF square, VF tail) {
  VF t = FN(splat_f)(two), h = FN(fma_f)(n, t, f), low = FN(fma_f)(n, t, -h) + f;
  VF more = square * -.5f + h;
  return more + (tail + (low + (square * -.5f + (h - more))));
}
// subnormal numbers are scaled
INLINE VF FN(normal_f)(VF x, VI *tiny) {
  *tiny = x < 1.17549435e-38f;
  return FN(sel_f)(*tiny, x * 33554432.f, x);
}
INLINE VF FN(log_ends_f)(VF x, VF out) {
  out = FN(sel_f)(x < PB_INF, out, x);
  out = FN(sel_f)(x == 0.f, FN(splat_f)(-PB_INF), out);
  return FN(sel_f)(x < 0.f, FN(splat_f)(PB_NAN), out);
}
INLINE VF FN(log_f)(VF x) {
  VI k, tiny;
  VF f = FN(mantissa_f)(FN(normal_f)(x, &tiny), &k), square;
  VF n = __builtin_convertvector(k - (tiny & 25), VF);
  VF tail = FN(log_tail_f)(f, &square, n * -2.12194440e-4f);
  return FN(log_ends_f)(x, FN(log_sum_f)(f, n, .693359375f, square, tail));
}
// to other bases: n and the product of log(1 + f) and the unit, both in two parts
#define PB_LOGARITHM(name, two_high, two_low, unit_high, unit_low)                                 \
  INLINE VF FN(name)(VF x) {                                                                       \
    VI k, tiny;                                                                                    \
    VF f = FN(mantissa_f)(FN(normal_f)(x, &tiny), &k), square, unit = FN(splat_f)(unit_high);      \
    VF n = __builtin_convertvector(k - (tiny & 25), VF);                                           \
    VF tail = FN(log_tail_f)(f, &square, (VF){}), more = square * -.5f + f;                        \
    tail = tail + (square * -.5f + (f - more));                                                    \
    VF l = more + tail, e = l * unit;                                                              \
    tail = (tail - (l - more)) * unit_high + (l * unit_low + FN(fma_f)(l, unit, -e));              \
    return FN(log_ends_f)(x, FN(log_sum_f)(e, n, two_high, (VF){}, tail + n * two_low));           \
  }
PB_LOGARITHM(log2_f, 1.f, 0.f, 1.442695f, 1.925962991e-8f)
PB_LOGARITHM(log10_f, .301025390625f, 4.605038981e-6f, .4342945f, -1.010305005e-8f)
#undef PB_LOGARITHM
INLINE VD FN(log_d)(VD x) {
  VL tiny = x < 2.2250738585072014e-308;
  VD y = FN(sel_dl)(tiny, x * 18014398509481984., x);
  VL bits = (VL)y - 0x3fe6a09e667f3bcdLL;
  VL k = bits >> 52;
  VD f = (VD)((bits & 0x000fffffffffffffLL) + 0x3fe6a09e667f3bcdLL) - 1.;
  VD n = __builtin_convertvector(k - (tiny & 54), VD);
  VD s = f / (2. + f), z = s * s;
  VD p = z * 1.479819860511658591e-01 + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  p = p * z + 6.666666666666735130e-01;
  VD h = .5 * f * f;
  VD out = n * 6.93147180369123816490e-01 - ((h - (s * (h + p * z) + n * 1.90821492927058770002e-10)) - f);
  out = FN(sel_dl)(x == (double)PB_INF, x, out);
  out = FN(sel_dl)(x == 0., FN(splat_d)(-PB_INF), out);
  return FN(sel_dl)((x < 0.) | (x != x), FN(splat_d)(PB_NAN), out);
}
INLINE VD FN(log2_d)(VD x) { return FN(log_d)(x) * 1.4426950408889634; }
INLINE VD FN(log10_d)(VD x) { return FN(log_d)(x) * .4342944819032518; }
// the logarithm of u = 1 + x, and of what that sum loses
INLINE VF FN(log1p_f)(VF x) {
  VF u = 1.f + x, lost = x - (u - 1.f);
  VI k;
  VF f = FN(mantissa_f)(u, &k), square;
  VI near = k == 0;
  VF n = __builtin_convertvector(k, VF);
  lost = lost * (VF)((128 - k) << 23);
  lost = lost * ((.4571562f * f - .5403358f) * f + .5024988f) + n * -2.12194440e-4f;
  f = FN(sel_f)(near, x, f);
  VF tail = FN(log_tail_f)(f, &square, (VF)((VI)lost & ~near));
  return FN(log_ends_f)(u, FN(copysign_f)(FN(log_sum_f)(f, n, .693359375f, square, tail), x));
}
INLINE VD FN(log1p_d)(VD x) {
  VD u = 1. + x, lost = (x - (u - 1.)) / u;
  VD out = FN(log_d)(u) + FN(sel_dl)((u > 0.) & (u < (double)PB_INF), lost, (VD){});
  return FN(sel_dl)(u == 1., x, out);
}

// ---- tanh, sigmoid ------------------------------------------------------------------------------

// t / (t + 2) with t = e^(2x) - 1: never beyond 1, and exactly 1 from 9.02 on. Of 2x = n ln 2 + r, ln 2
// needs no second part: where n is large, so is t, and the quotient hardly moves.
INLINE VF FN(tanh_f)(VF x) {
  VI sign = (VI)x & (int)0x80000000;
  VF c = FN(most_f)((VF)((VI)x ^ sign), 9.5f);
  VF m = c * 2.88539008177792681f + 12582912.f, n = m - 12582912.f;  // rounds, and n is in m's bits
  VF r = n * -0.693147182f + (c + c);
  VF s = r * r, p = s * 1.394113060e-3f + (r * 8.368366398e-3f + 4.166581854e-2f);
  p = p * s + (r * 1.666652411e-1f + 5.000000596e-1f);
  p = p * s + r;
  VF scale = (VF)(((VI)m << 23) + 0x3f800000);  // 2^n
  VF t = p * scale + (scale - 1.f);
  return (VF)((VI)(t / (t + 2.f)) ^ sign);
}
INLINE VD FN(tanh_d)(VD x) {
  VD a = FN(clamp_d)(FN(abs_d)(x), 0., 20.);
  VD t = FN(expm1_d)(2. * a);
  return FN(copysign_d)(t / (t + 2.), x);
}
INLINE VF FN(sigmoid_f)(VF x) { return 1.f / (1.f + FN(swift_exp_f)(-x)); }
INLINE VD FN(sigmoid_d)(VD x) { return 1. / (1. + FN(exp_d)(-x)); }

// ---- erf ----------------------------------------------------------------------------------------

INLINE VF FN(erf_f)(VF x) {
  VF a = FN(clamp_f)(FN(abs_f)(x), 0.f, 4.f), s = a * a;
  VF p = s * 7.87587505920702289e-5f - 8.01686428603299326e-4f;
  p = p * s + 5.18908742329200674e-3f;
  p = p * s - 2.68542120105409684e-2f;
  p = p * s + 1.12835947151577159e-1f;
  p = p * s - 3.76126266667200167e-1f;
  p = p * s + 1.12837916584835083f;
  // 1 - exp(-g), where g is a polynomial close to -log(erfc)
  VF g = a * -1.63715141459364356e-6f + 4.60580426891897792e-5f;
  g = g * a - 5.96805625660779706e-4f;
  g = g * a + 4.75959629326626464e-3f;
  g = g * a - 2.64211360056638967e-2f;
  g = g * a + 1.10080082948820247e-1f;
  g = g * a + 6.31826051559163014e-1f;
  g = g * a + 1.13023343484199403f;
  g = g * a - 3.20138049677698837e-4f;
  VF y = FN(sel_f)(a < 1.f, p * a, 1.f - FN(swift_exp_f)(-g));
  return FN(sel_f)(x != x, x, FN(copysign_f)(y, x));
}
INLINE VD FN(erf_d)(VD x) {
  VD a = FN(clamp_d)(FN(abs_d)(x), 0., 6.), s = a * a;
  VD p = s * 5.95717614774611496e-11 - 1.13728488567899247e-9;
  p = p * s + 1.46597752740469545e-8;
  p = p * s - 1.63503127010546184e-7;
  p = p * s + 1.64610004841213602e-6;
  p = p * s - 1.4925595266831181e-5;
  p = p * s + 1.20553311116427109e-4;
  p = p * s - 8.5483269808337899e-4;
  p = p * s + 5.22397762481801447e-3;
  p = p * s - 2.68661706450767932e-2;
  p = p * s + 1.12837916709548787e-1;
  p = p * s - 3.76126389031837481e-1;
  p = p * s + 1.12837916709551257;
  // erfc(a) exp(a^2) is a polynomial in t = (a - 2) / (a + 2)
  VD t = (a - 2.) / (a + 2.);
  VD h = t * -1.13525714772736264e-6 + 1.27256766184022802e-6;
  h = h * t + 4.01174964732506693e-6;
  h = h * t + 1.30585771222780165e-6;
  h = h * t - 1.39982837727849769e-5;
  h = h * t - 2.7562209161129353e-5;
  h = h * t + 2.75271755572272473e-5;
  h = h * t + 1.74359474002051576e-4;
  h = h * t + 4.3555586865754816e-5;
  h = h * t - 9.81976941103864265e-4;
  h = h * t - 8.47143252991950048e-4;
  h = h * t + 6.99746173697157874e-3;
  h = h * t + 3.73289240439783377e-3;
  h = h * t - 7.8978581015706104e-2;
  h = h * t + 2.41658194242465846e-1;
  h = h * t - 4.27185847413958486e-1;
  h = h * t + 2.55395676310505745e-1;
  VD y = FN(sel_dl)(a < 1., p * a, 1. - FN(exp_d)(-s) * h);
  return FN(sel_dl)(x != x, x, FN(copysign_d)(y, x));
}

// ---- sin, cos, tan ------------------------------------------------------------------------------

// x = n pi/2 + r + low.  Beyond `far` the constant, in parts, is not enough and libm takes over (rare).
INLINE VF FN(quarter_f)(VF x, VI *quadrant, VF *low) {
  VF n = FN(rint_f)(x * 0.636619772367581343f);
  VF a = n * -1.5703125f + x;
  a = n * -0.0004837512969970703125f + a;
  VF r = n * -7.549533620476722717285156e-8f + a;
  *low = n * -2.5633441515945188e-12f + (n * -7.549533620476722717285156e-8f + (a - r));
  *quadrant = __builtin_convertvector(n, VI);
  return r;
}
INLINE VD FN(quarter_d)(VD x, VL *quadrant) {
  VD n = FN(rint_d)(x * 0.636619772367581343);
  VD r = n * -1.57079632673412561417e+00 + x;
  r = n * -6.07710050630396597660e-11 + r;
  r = n * -2.02226624879595063154e-21 + r;
  *quadrant = __builtin_convertvector(n, VL);
  return r;
}
// sin(r + low) = r + tail
INLINE VF FN(sin_tail_f)(VF r, VF low) {
  VF s = r * r, rest = FN(fma_f)(r, r, -s);
  VF p = s * 2.724931392e-6f - 1.984008268e-4f;
  p = p * s + 8.333331905e-3f;
  p = p * s - 1.666666716e-1f;
  return p * (s * r) + (low * (1.f - .5f * s) + r * rest * -1.666666716e-1f);
}
// cos(r + low) = *whole + tail
INLINE VF FN(cos_tail_f)(VF r, VF low, VF *whole) {
  VF s = r * r, h = .5f * s, w = *whole = 1.f - h, rest = FN(fma_f)(r, r, -s);
  VF p = s * 2.454743662e-5f - 1.388830016e-3f;
  p = p * s + 4.166666418e-2f;
  return p * s * s + (((1.f - w) - h) - (rest * .5f + r * low));
}
INLINE VF FN(sin_core_f)(VF r, VF low) { return r + FN(sin_tail_f)(r, low); }
INLINE VF FN(cos_core_f)(VF r, VF low) {
  VF whole, tail = FN(cos_tail_f)(r, low, &whole);
  return whole + tail;
}
INLINE VD FN(sin_core_d)(VD r) {
  VD s = r * r;
  VD p = s * 1.58969099521155010221e-10 - 2.50507602534068634195e-08;
  p = p * s + 2.75573137070700676789e-06;
  p = p * s - 1.98412698298579493134e-04;
  p = p * s + 8.33333333332248946124e-03;
  p = p * s - 1.66666666666666324348e-01;
  return p * s * r + r;
}
INLINE VD FN(cos_core_d)(VD r) {
  VD s = r * r;
  VD p = s * -1.13596475577881948265e-11 + 2.08757232129817482790e-09;
  p = p * s - 2.75573143513906633035e-07;
  p = p * s + 2.48015872894767294178e-05;
  p = p * s - 1.38888888888741095749e-03;
  p = p * s + 4.16666666666666019037e-02;
  VD h = .5 * s, w = 1. - h;
  return w + (((1. - w) - h) + p * s * s);
}
#define PB_FAR(V, x, abs, limit, out, fn)                                                          \
  {                                                                                                \
    int far = 0;                                                                                   \
    for (int k = 0; k < PB_L; k++) far |= abs(x[k]) > limit;                                       \
    if (__builtin_expect(far, 0))                                                                  \
      for (int k = 0; k < PB_L; k++)                                                               \
        if (abs(x[k]) > limit) out[k] = fn(x[k]);                                                  \
  }
#define PB_FAR_F(fn) PB_FAR(VF, x, __builtin_fabsf, 8192.f, y, fn)
#define PB_FAR_D(fn) PB_FAR(VD, x, __builtin_fabs, 1e6, y, fn)
INLINE VF FN(sin_f)(VF x) {
  VI q;
  VF low, r = FN(quarter_f)(x, &q, &low);
  VF y = FN(sel_f)((q & 1) != 0, FN(cos_core_f)(r, low), FN(sin_core_f)(r, low));
  y = (VF)((VI)y ^ ((q & 2) << 30));
  PB_FAR_F(__builtin_sinf)
  return FN(sel_f)(x == 0.f, x, y);  // keeps -0
}
INLINE VF FN(cos_f)(VF x) {
  VI q;
  VF low, r = FN(quarter_f)(x, &q, &low);
  VF y = FN(sel_f)((q & 1) != 0, FN(sin_core_f)(r, low), FN(cos_core_f)(r, low));
  y = (VF)((VI)y ^ (((q + 1) & 2) << 30));
  PB_FAR_F(__builtin_cosf)
  return y;
}
INLINE VF FN(tan_f)(VF x) {
  VI q;
  VF low, r = FN(quarter_f)(x, &q, &low), whole;
  // both in two parts, and so the quotient
  VF t = FN(sin_tail_f)(r, low), s = r + t, u = FN(cos_tail_f)(r, low, &whole), c = whole + u;
  t = t - (s - r);
  u = u - (c - whole);
  VI odd = (q & 1) != 0;
  VF over = FN(sel_f)(odd, -c, s), under = FN(sel_f)(odd, s, c);
  VF more = FN(sel_f)(odd, -u, t), less = FN(sel_f)(odd, t, u), part = 1.f / under, y = over * part;
  y = y + (FN(fma_f)(-y, under, over) + (more - y * less)) * part;
  PB_FAR_F(__builtin_tanf)
  return FN(sel_f)(x == 0.f, x, y);  // keeps -0
}
INLINE VD FN(sin_d)(VD x) {
  VL q;
  VD r = FN(quarter_d)(x, &q);
  VD y = FN(sel_dl)((q & 1) != 0, FN(cos_core_d)(r), FN(sin_core_d)(r));
  y = (VD)((VL)y ^ ((q & 2) << 62));
  PB_FAR_D(__builtin_sin)
  return FN(sel_dl)(x == 0., x, y);  // keeps -0
}
INLINE VD FN(cos_d)(VD x) {
  VL q;
  VD r = FN(quarter_d)(x, &q);
  VD y = FN(sel_dl)((q & 1) != 0, FN(sin_core_d)(r), FN(cos_core_d)(r));
  y = (VD)((VL)y ^ (((q + 1) & 2) << 62));
  PB_FAR_D(__builtin_cos)
  return y;
}
INLINE VD FN(tan_d)(VD x) {
  VL q;
  VD r = FN(quarter_d)(x, &q);
  VD s = FN(sin_core_d)(r), c = FN(cos_core_d)(r);
  VL odd = (q & 1) != 0;
  VD y = FN(sel_dl)(odd, -c, s) / FN(sel_dl)(odd, s, c);
  PB_FAR_D(__builtin_tan)
  return FN(sel_dl)(x == 0., x, y);  // keeps -0
}

// ---- pow ----------------------------------------------------------------------------------------

// float through double, so that y log(x) keeps its digits; the special values of C99 (and IEEE 754)
INLINE VF FN(pow_f)(VF x, VF y) {
  VF a = FN(abs_f)(x);
  VD e = FN(log_d)(__builtin_convertvector(a, VD)) * __builtin_convertvector(y, VD);
  VF out = __builtin_convertvector(FN(exp_d)(e), VF);
  VF half = FN(trunc_f)(y * .5f) * 2.f;
  VI whole = FN(trunc_f)(y) == y, odd = whole & (half != y);
  VI negative = (VI)x < 0;
  out = FN(sel_f)(negative & odd, -out, out);
  out = FN(sel_f)((x < 0.f) & (x > -PB_INF) & ~whole, FN(splat_f)(PB_NAN), out);
  VI unit = (x == 1.f) | (y == 0.f) | ((x == -1.f) & (FN(abs_f)(y) == PB_INF));
  return FN(sel_f)(unit, FN(splat_f)(1.f), out);
}
// double has no wider type to go through: libm per lane
INLINE VD FN(pow_d)(VD x, VD y) {
  for (int k = 0; k < PB_L; k++) x[k] = __builtin_pow(x[k], y[k]);
  return x;
}
#undef PB_LANEWISE
#undef PB_FAR
#undef PB_FAR_F
#undef PB_FAR_D

// ---- hyperbolic functions and their inverses ------------------------------------------------------

// halves of e^|x| are numbers where results are
INLINE VF FN(sinh_f)(VF x) {
  VI is_near;
  VF a = FN(abs_f)(x), near, square = a * a;
  VF h = 2.f * FN(expm1_quarter_f)(FN(most_f)(a, 89.5f), &is_near, &near);
  VF p = (square * 1.98412698e-4f + 8.33333333e-3f) * square + 1.66666667e-1f;
  VF most = FN(most_f)(h, 1e30f), y = h + most / (2.f * most + 1.f);
  y = FN(sel_f)(is_near, p * (square * a) + a, y);
  return FN(copysign_f)(y, x);
}
INLINE VF FN(cosh_f)(VF x) {
  VF n, low, r = FN(exp_rest_f)(FN(most_f)(FN(abs_f)(x), 89.5f), &n, &low), h = r + 1.f;
  h = FN(scale_f)(h + FN(exp_tail_f)(r, low * h + (r - (h - 1.f))), n - 1.f);
  return h + .25f / h;
}
INLINE VD FN(sinh_d)(VD x) {
  VD a = FN(abs_d)(x), e = FN(expm1_d)(a), h = FN(exp_d)(a * .5);
  return FN(copysign_d)(FN(sel_dl)(a > 20., h * .5 * h, (e + e / (e + 1.)) * .5), x);
}
INLINE VD FN(cosh_d)(VD x) {
  VD a = FN(abs_d)(x), e = FN(exp_d)(a), h = FN(exp_d)(a * .5);
  return FN(sel_dl)(a > 20., h * .5 * h, (e + 1. / e) * .5);
}
#define PB_HYPERBOLIC(V, t, sel, big, ln2)                                                          \
  INLINE V FN(asinh_##t)(V x) {                                                                     \
    V a = FN(abs_##t)(x), s = a * a;                                                                \
    V y = FN(log1p_##t)(a + s / (FN(sqrt_##t)(s + 1) + 1));                                         \
    return FN(copysign_##t)(FN(sel)(a > big, FN(log_##t)(a) + ln2, y), x);                          \
  }                                                                                                 \
  INLINE V FN(acosh_##t)(V x) {                                                                     \
    V d = x - 1, y = FN(log1p_##t)(d + FN(sqrt_##t)(d * (d + 2)));                                  \
    y = FN(sel)(x > big, FN(log_##t)(x) + ln2, y);                                                  \
    return FN(sel)(x < 1, FN(splat_##t)(PB_NAN), y);                                                \
  }                                                                                                 \
  INLINE V FN(atanh_##t)(V x) {                                                                     \
    V a = FN(abs_##t)(x);                                                                           \
    return FN(copysign_##t)(FN(log1p_##t)(2 * a / (1 - a)) * (__typeof__(x[0])).5, x);              \
  }
PB_HYPERBOLIC(VF, f, sel_f, 1e4f, .693147180559945309f)
PB_HYPERBOLIC(VD, d, sel_dl, 1e8, .693147180559945309)
#undef PB_HYPERBOLIC

// ---- angles -----------------------------------------------------------------------------------------

// Small angles by a polynomial (float) or a quotient of two (double); larger ones are seen from 45 or
// 90 degrees, whose numbers come in two parts.
INLINE VF FN(atan_f)(VF x) {
  VF a = FN(most_f)(FN(abs_f)(x), 1e20f);
  VI steep = a > 2.414213562373095f, middle = ~steep & (a > .5f);
  VF over = FN(sel_f)(steep, FN(splat_f)(-1.f), FN(sel_f)(middle, a - 1.f, a)), sum = a + 1.f;
  VF under = FN(sel_f)(steep, a, FN(sel_f)(middle, sum, FN(splat_f)(1.f)));
  VF lost = (VF)((VI)(a - (sum - 1.f)) & middle), part = 1.f / under, z = over * part, s = z * z;
  VF low = (FN(fma_f)(-z, under, over) - z * lost) * part;  // what the quotient has lost
  VF p = s * 4.224750027e-2f - 8.234976232e-2f;
  p = p * s + 1.100677699e-1f;
  p = p * s - 1.427979320e-1f;
  p = p * s + 1.999987513e-1f;
  p = p * s - 3.333333433e-1f;
  VF view = FN(sel_f)(steep, FN(splat_f)(1.57079637f), (VF)((VI)FN(splat_f)(.785398185f) & middle));
  low = FN(fma_f)(view, FN(splat_f)(-2.78275340e-8f), low - s * low);
  VF y = view + z;
  return FN(copysign_f)(y + (p * (s * z) + (low + (z - (y - view)))), x);
}
// The angle whose sine is a, or twice that whose sine is sqrt((1 - a) / 2), as y + tail
INLINE VF FN(angle_f)(VF a, VI steep, VF *tail) {
  VF s = FN(sel_f)(steep, .5f - .5f * a, a * a), z = FN(sel_f)(steep, FN(sqrt_f)(s), a);
  VF low = FN(fma_f)(-z, z, s) / (z + z);
  low = (VF)((VI)FN(sel_f)(s > 0.f, low, (VF){}) & steep);
  VF p = s * 3.370072693e-2f + 1.714371704e-2f;
  p = p * s + 3.110172786e-2f;
  p = p * s + 4.459932074e-2f;
  p = p * s + 7.500094920e-2f;
  p = p * s + 1.666666567e-1f;
  VF times = FN(sel_f)(steep, FN(splat_f)(2.f), FN(splat_f)(1.f));
  *tail = (p * (s * z) + low) * times;
  return z * times;
}
// view + y + tail, where the number of `view` has a second part in proportion to it
INLINE VF FN(seen_f)(VF view, VF y, VF tail) {
  VF h = view + y;
  return h + (FN(fma_f)(view, FN(splat_f)(-2.78275340e-8f), tail) + (y - (h - view)));
}
INLINE VF FN(asin_f)(VF x) {
  VF a = FN(abs_f)(x), tail;
  VI steep = a > .5f;
  VF y = FN(angle_f)(a, steep, &tail), view = (VF)((VI)FN(splat_f)(1.57079637f) & steep);
  y = FN(seen_f)(view, FN(sel_f)(steep, -y, y), FN(sel_f)(steep, -tail, tail));
  return FN(copysign_f)(y, x);
}
INLINE VF FN(acos_f)(VF x) {
  VF a = FN(abs_f)(x), tail;
  VI steep = a > .5f, turned = ((VI)x < 0) ^ ~steep;  // does the angle grow with y?
  VF y = FN(angle_f)(a, steep, &tail);
  VF view = FN(sel_f)(steep, (VF)((VI)FN(splat_f)(3.14159274f) & ((VI)x < 0)), FN(splat_f)(1.57079637f));
  return FN(seen_f)(view, FN(sel_f)(turned, -y, y), FN(sel_f)(turned, -tail, tail));
}
INLINE VD FN(atan_d)(VD x) {
  VD a = FN(abs_d)(x);
  VL steep = a > 2.41421356237309504880, middle = ~steep & (a > .66);
  VD z = FN(sel_dl)(steep, -1. / a, FN(sel_dl)(middle, (a - 1.) / (a + 1.), a)), s = z * z;
  VD p = s * -8.750608600031904122785e-1 - 1.615753718733365076637e1;
  p = p * s - 7.500855792314704667340e1;
  p = p * s - 1.228866684490136173410e2;
  p = p * s - 6.485021904942025371773e1;
  VD q = s + 2.485846490142306297962e1;
  q = q * s + 1.650270098316988542046e2;
  q = q * s + 4.328810604912902668951e2;
  q = q * s + 4.853903996359136964868e2;
  q = q * s + 1.945506571482613964425e2;
  VD y = p * s / q * z + z;
  VD rest = FN(sel_dl)(steep, FN(splat_d)(6.123233995736765886130e-17),
                       FN(sel_dl)(middle, FN(splat_d)(3.061616997868382943065e-17), (VD){}));
  y = FN(sel_dl)(steep, FN(splat_d)(1.57079632679489661923),
                 FN(sel_dl)(middle, FN(splat_d)(.785398163397448309616), (VD){})) + (y + rest);
  return FN(copysign_d)(y, x);
}
INLINE VD FN(asin_d)(VD x) { return 2. * FN(atan_d)(x / (FN(sqrt_d)((1. - x) * (1. + x)) + 1.)); }
INLINE VD FN(acos_d)(VD x) { return 2. * FN(atan_d)(FN(sqrt_d)((1. - x) / (1. + x))); }
#define PB_ANGLES(V, t, W, sel, half, pi)                                                           \
  INLINE V FN(atan2_##t)(V y, V x) {                                                                \
    V a = FN(abs_##t)(y), b = FN(abs_##t)(x);                                                       \
    W over = a > b;                                                                                 \
    V low = FN(sel)(over, b, a), high = FN(sel)(over, a, b);                                        \
    V r = FN(sel)(low == high, FN(splat_##t)(1), low / high);  /* two infinities */                 \
    r = FN(sel)(high == 0, (V){}, r);                                                               \
    r = FN(atan_##t)(r);                                                                            \
    r = FN(sel)(over, half - r, r);                                                                 \
    r = FN(sel)((W)x < 0, pi - r, r);  /* the sign bit: -0, too */                                  \
    r = FN(copysign_##t)(r, y);                                                                     \
    return FN(sel)((x != x) | (y != y), x + y, r);                                                  \
  }
PB_ANGLES(VF, f, VI, sel_f, 1.57079632679489661923f, 3.14159265358979323846f)
PB_ANGLES(VD, d, VL, sel_dl, 1.57079632679489661923, 3.14159265358979323846)
#undef PB_ANGLES

// ---- remainders -------------------------------------------------------------------------------------

// exact, element by element; the remainder has the sign of the divisor
#define PB_REMAINDERS(V, t, sel, fn)                                                                \
  INLINE V FN(fmod_##t)(V x, V y) {                                                                 \
    for (int k = 0; k < PB_L; k++) x[k] = fn(x[k], y[k]);                                           \
    return x;                                                                                       \
  }                                                                                                 \
  INLINE V FN(remainder_##t)(V x, V y) {                                                            \
    V m = FN(fmod_##t)(x, y);                                                                       \
    V zero = FN(copysign_##t)((V){}, y);                                                            \
    return FN(sel)(m == 0, zero, FN(sel)((y < 0) != (m < 0), m + y, m));                            \
  }
PB_REMAINDERS(VF, f, sel_f, __builtin_fmodf)
PB_REMAINDERS(VD, d, sel_dl, __builtin_fmod)
#undef PB_REMAINDERS
