//! The mathematics of the library and the statistics of the report, compared with values computed
//! with mpmath 1.3 at 50 or more digits.
//!
//! The logarithms are natural, and every decimal argument stands for the f64 it parses to. The
//! mpmath expression of each table stands above it.

// Values at the edges of a domain are exact, and compared as such.

use proptest::prelude::*;
use tamis::internals::math::gamma::{ln_choose, ln_gamma_p};
use tamis::internals::math::occupancy::{
    expected_power, mean_occupied, power_spread, variance_occupied,
};
use tamis::internals::math::ode::rk4;
use tamis::internals::math::solve::{first_true, first_true_near};
use tamis::internals::math::tail::{
    binomial_above, binomial_pmf, ln_binomial_above, ln_binomial_pmf, ln_poisson_above,
    ln_poisson_pmf, poisson_above, poisson_pmf,
};
use tamis_report::papers::occupancy::Occupancy;
use tamis_report::papers::solve::bisect;
use tamis_report::papers::statistics::{
    beta_i, binomial_at_most, exact_interval, gamma_p, gamma_q, ln_beta_i, ln_binomial_at_most,
    ln_gamma_q, ln_poisson_at_most, normal_quantile, poisson_at_most,
};

/// (k, mean, ln Pr[X = k], ln Pr[X > k], ln Pr[X <= k]).
/// `k*log(m) - m - loggamma(k+1)`; the smaller tail is its end term times `nsum` of the term
/// ratios m/j, the other one `log(1 - exp(.))`.
#[rustfmt::skip]
const POISSON: &[(u64, f64, f64, f64, f64)] = &[
    (0, 1e-06, -1e-06, -13.815511057964233, -1e-06),
    (2, 1e-06, -28.324169296488492, -43.23829189312086, -1.6666654166671664e-19),
    (6, 1e-06, -89.47231555979575, -105.23373614181533, -1.984125248016644e-46),
    (1, 0.01, -4.615170185988092, -9.910151440191221, -4.966914683191715e-05),
    (3, 0.01, -15.61727002719233, -21.606733240204868, -4.13347182711762e-10),
    (7, 0.01, -40.77135266298205, -47.454852785478835, -2.4582117811911105e-21),
    (1, 0.5, -1.1931471805599454, -2.405681391360371, -0.09453489189183562),
    (3, 0.5, -4.371201010907891, -6.34721274558465, -0.0017531584408694348),
    (6, 0.5, -11.238134295369774, -13.81313378185141, -1.00238010526707e-06),
    (16, 0.5, -42.2622149950398, -45.76044735970522, -1.3381050885991002e-20),
    (3, 3.0, -1.4959226032237258, -1.0419443466394527, -0.43505064253846326),
    (11, 3.0, -8.41757267052468, -9.547399975424629, -7.138917712087454e-05),
    (32, 3.0, -49.40236621873553, -51.70815275568434, -3.494898672656694e-23),
    (17, 20.0, -2.577624799719042, -0.35243878332831596, -1.2139275288423543),
    (21, 20.0, -2.469761153843097, -1.0319756063760266, -0.44052615316270305),
    (39, 20.0, -9.79820159203781, -9.841414096317443, -5.3203440390397535e-05),
    (86, 20.0, -62.58797312137091, -63.80127717235638, -1.9563987905418393e-28),
    (37, 56.0, -6.392599897586905, -0.0045695377856781886, -5.390627119045416),
    (56, 56.0, -2.9331024579944445, -0.7667068327379638, -0.6246297630364885),
    (64, 56.0, -3.5456912755916474, -2.0470541221210876, -0.13824499855649902),
    (74, 56.0, -5.696888981785841, -4.730972990603234, -0.00885699477741938),
    (103, 56.0, -19.002973728198285, -18.871392604273037, -6.3717441299039475e-09),
    (128, 56.0, -37.16046207311852, -37.435685517465245, -5.5193553190068734e-17),
    (163, 56.0, -70.61528202208335, -71.27676409185672, -1.1089058305911994e-31),
    (115, 200.0, -24.652826841990603, -4.555182916768251e-11, -23.81217033569308),
    (192, 200.0, -3.710297298714901, -0.3579532990362371, -1.2009963156506953),
    (204, 200.0, -3.6181429949522754, -0.9911030748548989, -0.463889622092124),
    (256, 200.0, -10.888032726582823, -9.686199383530164, -6.213703840532018e-05),
    (390, 200.0, -74.35568088243899, -74.31501883687201, -5.313704467949976e-33),
    (810, 1000.0, -23.583523172012516, -2.950439080605807e-10, -21.94389692992863),
    (984, 1000.0, -4.493524351069277, -0.3760514546015817, -1.1601696741350311),
    (1009, 1000.0, -4.4177576772170495, -0.9673080781098011, -0.47820496810104907),
    (1126, 1000.0, -12.056368407744941, -10.046961480084693, -4.331810759510989e-05),
    (1426, 1000.0, -84.59966843295409, -83.75409629746969, -4.227252028546144e-37),
    (9400, 10000.0, -23.86438493255971, -7.031178668341319e-10, -21.075496575885794),
    (9950, 10000.0, -5.646819679224763, -0.37214324662785536, -1.1687842540606261),
    (10030, 10000.0, -5.570569849469512, -0.968616652098379, -0.47740342788849044),
    (10400, 10000.0, -13.439143882715396, -10.27728956186702, -3.4406248804361454e-05),
    (11350, 10000.0, -92.86802048050743, -90.87168233991517, -3.42712384357965e-40),
    (98102, 100000.0, -24.792890861874813, -8.773750286929267e-10, -20.8540865886135),
    (99841, 100000.0, -6.801078515616095, -0.36852586311054025, -1.1768549025243105),
    (100094, 100000.0, -6.720038040914763, -0.9614193923944042, -0.48183299511154054),
    (101264, 100000.0, -14.636715470161835, -10.321447045374304, -3.291998672433151e-05),
    (104269, 100000.0, -96.5484336677915, -93.40028743281073, -2.7338240499149963e-41),
    (9981026, 10000000.0, -26.989066179790754, -9.75748183143239e-10, -20.74781657236795),
    (9998418, 10000000.0, -9.103050060131979, -0.3689083880463822, -1.1759969895731772),
    (10000948, 10000000.0, -9.02296754488474, -0.9620928350126526, -0.4814163347722592),
    (10012649, 10000000.0, -16.975107591332577, -10.357282956546483, -3.1761138475582675e-05),
    (10042690, 10000000.0, -99.97253106116564, -94.52159229152838, -8.908283856396276e-42),
];

/// (n, p, k, ln Pr[X = k], ln Pr[X > k], ln Pr[X <= k]).
/// `log(binomial(n,k)) + k*log(p) + (n-k)*log(1-p)`, tails as above by (n-j+1)p / (j(1-p)).
#[rustfmt::skip]
const BINOMIAL: &[(u64, f64, u64, f64, f64, f64)] = &[
    (1, 0.3, 0, -0.35667494393873234, -1.2039728043259361, -0.35667494393873234),
    (10, 0.5, 1, -4.628886712605407, -0.010800301350769714, -4.533576532801082),
    (10, 0.5, 5, -1.4020427180880297, -0.9756344361346222, -0.4731335222546632),
    (10, 0.999999999999, 9, -25.328458144908314, -9.999778782803785e-12, -25.328458144903813),
    (100, 0.01, 1, -0.9949832494966426, -1.3309049870396517, -0.30684861076024167),
    (100, 0.01, 4, -4.203598322939813, -5.674518399020573, -0.0034382255168220145),
    (100, 0.01, 9, -14.08706328780561, -16.388384855781954, -7.631587823466276e-08),
    (100, 0.01, 16, -32.783385832291074, -35.733356908950235, -3.028309608779953e-16),
    (100, 0.01, 90, -384.0834967351846, -390.88590248604214, -1.7394401749893084e-170),
    (100, 0.01, 99, -451.3167285626865, -460.51701859880916, -1.000000000000002e-200),
    (2000, 0.01, 18, -2.4687540512211976, -0.4789600506755774, -0.9660778713402812),
    (2000, 0.01, 22, -2.5605517646820966, -1.2779304200007833, -0.32657997026104285),
    (2000, 0.01, 28, -4.018374033823595, -3.393004014411277, -0.03418528243186885),
    (2000, 0.01, 46, -15.308716337800405, -15.656496401754953, -1.586609466712074e-07),
    (2000, 0.4, 537, -79.76940597381548, -5.034397101100551e-35, -78.97418447737944),
    (2000, 0.4, 756, -6.0254857324127995, -0.023556417372576723, -3.760112083503857),
    (2000, 0.4, 800, -4.0059635295934, -0.7127582437423776, -0.6739133255793518),
    (2000, 0.4, 843, -5.929139399660432, -3.7389525165041495, -0.024066281929945206),
    (2000, 0.4, 1091, -90.03399778015716, -89.81889294605827, -9.820880415595793e-40),
    (1000000, 0.01, 9403, -23.854641570840187, -7.068554189137031e-10, -21.070194970713107),
    (1000000, 0.01, 9960, -5.598023060256645, -0.4249502837867497, -1.0607452477462191),
    (1000000, 0.01, 10049, -5.642578157355269, -1.174461440165893, -0.369594242676058),
    (1000000, 0.01, 10596, -23.14527938106033, -20.36352645466682, -1.4329559132151842e-09),
    (1000000, 0.4, 394121, -79.23572646855378, -1.587019364069145e-33, -75.52345042565179),
    (1000000, 0.4, 399020, -9.114104958809689, -0.023034987395984516, -3.7822364127813364),
    (1000000, 0.4, 400000, -7.113135898255626, -0.6940161844480043, -0.6922789311840172),
    (1000000, 0.4, 400979, -9.109752280005004, -3.781268547390362, -0.023057552098446406),
    (1000000, 0.4, 406515, -95.38630072986194, -91.79635421153468, -1.359408268299356e-40),
    (1000000, 0.999, 998810, -21.481772190584703, -2.8557107291553795e-09, -19.673945084336374),
    (1000000, 0.999, 998987, -4.463070572560717, -0.42252362540047184, -1.0653441713657346),
    (1000000, 0.999, 999015, -4.47803058267475, -1.1604552933905197, -0.37592109022314046),
    (1000000, 0.999, 999189, -23.39150753371411, -21.962349008789303, -2.8964965524181223e-10),
    (1000000, 1e-06, 0, -1.0000005000003334, -0.4586748543986496, -1.0000005000003334),
    (1000000, 1e-06, 2, -1.6931466805597788, -2.521969405341452, -0.08370916812575827),
    (1000000, 1e-06, 6, -7.579260712034935, -9.393784094942065, -8.324333656549493e-05),
    (1000000, 1e-06, 14, -26.191298683141518, -28.835081795043564, -2.9997363872158437e-13),
    (100000000, 0.9999999, 99999952, -40.14984618452317, -4.588983961377241e-18, -39.922873033501),
    (100000000, 0.9999999, 99999980, -6.283915006136187, -0.0034603202854078794, -5.6681237873934345),
    (100000000, 0.9999999, 99999988, -2.3561933407860485, -0.3612910782135099, -1.1932839758945413),
    (100000000, 0.9999999, 99999991, -2.0785616026087013, -1.1001544729727957, -0.4046949069144969),
    (100000000, 0.9999999, 99999997, -4.884004416561445, -5.889126459381172, -0.0027732366880343544),
    (10000000000, 1e-12, 0, -0.010000000000005, -4.610166019324399, -0.010000000000005),
    (10000000000, 1e-12, 3, -15.617270027489335, -21.60673324080167, -4.133471824650745e-10),
    (10000000000, 1e-12, 15, -96.98682418414727, -104.36399470474633, -4.734705711573728e-46),
    (10000000000, 1e-08, 80, -5.259509422646396, -0.022909608612642608, -3.7876318019985313),
    (10000000000, 1e-08, 100, -3.222356951754353, -0.7477347340762309, -0.6413858185261518),
    (10000000000, 1e-08, 119, -5.009644118013262, -3.567356103731823, -0.028636532793617418),
    (10000000000, 1e-08, 232, -66.8862543511644, -67.17696861068586, -6.689801343368622e-30),
    (10000000000, 0.99999999, 9999999840, -18.65762682330889, -2.0506978246460683e-08, -17.70250061671287),
    (10000000000, 0.99999999, 9999999896, -3.3208894057994907, -0.4427207886465969, -1.028022936311265),
    (10000000000, 0.99999999, 9999999905, -3.323891223554136, -1.2201723490000926, -0.3498118187029408),
    (10000000000, 0.99999999, 9999999960, -26.1138327547193, -26.545745625913035, -2.9602552271787326e-12),
    (10000000000, 0.999999999999, 9999999990, -61.166335435877336, -2.730190781917336e-27, -61.1654260205979),
    (10000000000, 0.999999999999, 9999999998, -9.913531575346553, -4.966695658168382e-05, -9.910195536864357),
    (10000000000, 1e-06, 8800, -80.52660377621658, -8.829746727390915e-35, -78.41235192378178),
    (10000000000, 1e-06, 9800, -7.527485667246505, -0.023011923147376375, -3.7832266968084123),
    (10000000000, 1e-06, 10000, -5.524116552525845, -0.6984805401093597, -0.6878421148998413),
    (10000000000, 1e-06, 10199, -7.5010154666141275, -3.7596935375214033, -0.023566395998140748),
    (10000000000, 1e-06, 11329, -90.22733590866498, -88.21550231712376, -4.880834989548374e-39),
    (10000000000, 0.99999, 9999898102, -24.584111417332455, -1.101060139852993e-09, -20.62699235831176),
    (10000000000, 0.99999, 9999899873, -6.75664337768874, -0.4222107954452674, -1.065939393297182),
    (10000000000, 0.99999, 9999900158, -6.79949352146825, -1.1768577703500867, -0.3685245852042076),
    (10000000000, 0.99999, 9999901897, -24.773913641460705, -20.854271365943152, -8.772129246549878e-10),
    (10000000000, 0.001, 9957962, -97.54757845605543, -1.021266440749479e-40, -92.08236025404624),
    (10000000000, 0.001, 10000632, -8.997508454697986, -0.8658925710821296, -0.5458932030218301),
    (10000000000, 0.4, 3999348435, -100.16507749384589, -1.1554182431121033e-40, -91.9589413260874),
    (10000000000, 0.4, 4000009797, -11.738302308353115, -0.865731422369191, -0.546010237355916),
    (10000000000, 0.999, 9989957962, -97.3041460813202, -1.3081885540358749e-40, -91.8347603226544),
    (10000000000, 0.999, 9990000632, -8.997446159415178, -0.8657986585958283, -0.5459614030542491),
];

/// (a, x, ln P, ln Q): `log(gammainc(a, 0, x, regularized=True))`, `log(gammainc(a, x, ...))`.
#[rustfmt::skip]
const GAMMA: &[(f64, f64, f64, f64)] = &[
    (0.5, 0.1, -1.0634020471545287, -0.4235463234759657),
    (0.5, 3.0, -0.014409194045103478, -4.24708474678559),
    (1.0, 1e-09, -20.723265837446412, -1e-09),
    (2.5, 2.5, -0.5376491579419246, -0.8773580722343328),
    (10.0, 25.0, -0.0002215011678213136, -8.415193444701623),
    (100.5, 60.0, -13.688258779509681, -1.135703572226019e-06),
    (100.5, 140.0, -0.0001929206094050913, -8.553328262673729),
    (299.0, 310.0, -0.2991882429662505, -1.3525494947415135),
    (301.0, 290.0, -1.3214139064559682, -0.3102792967617421),
    (5000.25, 5100.0, -0.08321937932638812, -2.5275961789509),
    (5000.25, 4900.0, -2.5583918738986338, -0.08059111059654579),
];

/// (a, b, x, ln I, ln(1 - I)): `log(betainc(a, b, 0, x, regularized=True))`.
#[rustfmt::skip]
const BETA: &[(f64, f64, f64, f64, f64)] = &[
    (0.5, 0.5, 0.3, -0.9969312110207781, -0.4604654539158712),
    (2.0, 3.0, 0.7, -0.08741145701096954, -2.480516301486707),
    (0.1, 40.0, 0.001, -0.2766605181555798, -1.4201071713666091),
    (120.5, 3.25, 0.9, -7.833825204995554, -0.0003961858579302876),
    (50.0, 60.0, 0.2, -20.690898035849465, -1.0328973367564573e-09),
    (310.5, 305.25, 0.5, -0.8766751305588113, -0.5381356814830781),
    (2000.5, 4000.5, 0.33, -1.2341095750090307, -0.3440321226179931),
    (2000.5, 4000.5, 0.2, -296.53692620482843, -1.643044283305041e-129),
    (400.0, 1000000.0, 1e-05, -1089.3616589403678, -0.0),
];

/// (n, k, `loggamma(n+1) - loggamma(k+1) - loggamma(n-k+1)`).
#[rustfmt::skip]
const CHOOSE: &[(u64, u64, f64)] = &[
    (7, 2, 3.044522437723423),
    (60, 30, 39.31170072601126),
    (1000, 17, 83.79001206558658),
    (1000000, 500000, 693140.0470130637),
    (10000000000, 3, 67.28579332029332),
    (10000000000, 1000, 17113.72270150229),
    (10000000000, 9999999923, 1512.425580340952),
    (1000000000000, 10, 261.205798586165),
    (1000000000000000, 40, 1271.2304160816693),
    (1000000000000000, 2000, 55871.02843930556),
];

/// (successes, trials, confidence, low, high): `findroot` of the binomial tail minus
/// (1 - confidence) / 2.
#[rustfmt::skip]
const INTERVALS: &[(u64, u64, f64, f64, f64)] = &[
    (0, 10, 0.95, 0.0, 0.3084971078187608),
    (10, 10, 0.95, 0.6915028921812393, 1.0),
    (1, 10, 0.95, 0.002528578544461787, 0.4450161170281954),
    (5, 10, 0.99, 0.12831055393508328, 0.8716894460649167),
    (3, 1000, 0.95, 0.0006190999316495715, 0.008742023238478303),
    (500, 1000, 0.999, 0.4476294198586042, 0.5523705801413957),
    (999, 1000, 0.95, 0.9944410757201734, 0.9999746825125088),
    (12345, 1000000, 0.95, 0.012129493825606122, 0.012563337660712827),
    (0, 10000000000, 0.99, 0.0, 5.298317365144428e-10),
    (7, 10000000000, 0.95, 2.8143630519681433e-10, 1.4422675356349636e-09),
    (9999999997, 10000000000, 0.95, 0.9999999991232726, 0.9999999999381328),
    (10000, 10000000000, 0.999999, 9.518455856256434e-07, 1.049785352404299e-06),
    (10000000000, 10000000000, 0.9, 0.9999999997004267, 1.0),
];

/// (p, `sqrt(2) * erfinv(2*p - 1)`).
#[rustfmt::skip]
const QUANTILES: &[(f64, f64)] = &[
    (1e-300, -37.0470962993612),
    (1e-40, -13.31092137142517),
    (1e-10, -6.361340902404057),
    (0.001, -3.0902323061678136),
    (0.025, -1.9599639845400543),
    (0.2, -0.8416212335729142),
    (0.3, -0.5244005127080408),
    (0.4999999, -2.5066282747031063e-07),
    (0.5000001, 2.506628273311648e-07),
    (0.7, 0.5244005127080407),
    (0.975, 1.9599639845400538),
    (0.999999, 4.753424308817087),
    (0.999999999999, 7.0344869100478356),
];

/// (m, t, mean, variance) by the textbook formulas at 80 digits.
#[rustfmt::skip]
const OCCUPIED: &[(u64, u64, f64, f64)] = &[
    (3, 2, 1.6666666666666667, 0.2222222222222222),
    (10, 3, 2.71, 0.2259),
    (1000, 2, 1.999, 0.000999),
    (1000, 700, 503.5885865689007, 77.37790323703383),
    (1000000, 2, 1.999999, 9.99999e-07),
    (1000000, 500000, 393469.4919201136, 54711.48427755164),
    (1000000, 3000000, 950213.0063127324, 39872.01844373178),
    (1000000000, 1000000000, 632120559.0124974, 97208874.71728015),
    (1000000000000, 1000, 999.9999995005, 4.994999991686655e-07),
    (1000000000000000, 1000, 999.9999999995005, 4.994999999991687e-10),
    (1000000000000000, 700000000000000, 503414696208590.7, 77370465090678.52),
    (1000000000000000, 4000000000000000, 981684361111265.9, 16638325749221.592),
];

/// (m, t, k, E[(X/m)^k]): `sum(stirling2(k,i) * ff(m,i) / m**k * sum((-1)**j * binomial(i,j) *
/// (1 - j/m)**t, j=0..i), i=1..k)` at 450 digits.
#[rustfmt::skip]
const POWERS: &[(u64, u64, u32, f64)] = &[
    (4096, 2800, 7, 0.0073183495154458345),
    (4096, 976, 64, 9.553530388096119e-44),
    (100000, 70000, 10, 0.0010455229126171421),
    (1000000, 700000, 20, 1.0928133356597863e-06),
    (1048577, 700000, 20, 5.642193567170908e-07),
    (1048577, 3200, 64, 9.315453080037028e-162),
    (1048577, 20000000, 64, 0.999999666833794),
    (1048577, 1048577, 64, 1.7840434482296002e-13),
    (1048577, 1048577, 20, 0.00010375758677333984),
    (1500000, 1100000, 40, 4.265821289834349e-12),
    (1000000000, 2000, 20, 1.048555138443489e-114),
    (1000000000000000, 1000000, 10, 9.999999950000275e-91),
    (10000000, 7000000, 30, 1.1423071909438599e-09),
    (1000000000, 700000000, 20, 1.0927424731058657e-06),
];

/// The relative error of a probability whose logarithm is `got` where it should be `want`. For
/// logarithms near 0 it is relative to the logarithm, so that a complement must be exact as well.
fn log_error(got: f64, want: f64) -> f64 {
    let size = want.abs().min(1.0);
    if got == want { 0.0 } else { (got - want).abs() / size }
}

fn relative_error(got: f64, want: f64) -> f64 {
    if got == want { 0.0 } else { ((got - want) / want).abs() }
}

#[test]
fn poisson_matches_the_references() {
    for &(k, mean, pmf, above, at_most) in POISSON {
        let got = [ln_poisson_pmf(k, mean), ln_poisson_above(k, mean), ln_poisson_at_most(k, mean)];
        for (got, want) in got.into_iter().zip([pmf, above, at_most]) {
            let error = log_error(got, want);
            assert!(error <= 1e-10, "k {k} mean {mean}: {got} for {want}, error {error:e}");
        }
        assert!(relative_error(poisson_above(k, mean), above.exp()) <= 1e-8);
        assert!(relative_error(poisson_at_most(k, mean), at_most.exp()) <= 1e-8);
        assert!(relative_error(poisson_pmf(k, mean), pmf.exp()) <= 1e-8);
    }
}

#[test]
fn binomial_matches_the_references() {
    for &(n, p, k, pmf, above, at_most) in BINOMIAL {
        let got =
            [ln_binomial_pmf(n, p, k), ln_binomial_above(n, p, k), ln_binomial_at_most(n, p, k)];
        for (got, want) in got.into_iter().zip([pmf, above, at_most]) {
            let error = log_error(got, want);
            assert!(error <= 1e-9, "n {n} p {p} k {k}: {got} for {want}, error {error:e}");
        }
        assert!(relative_error(binomial_above(n, p, k), above.exp()) <= 1e-8);
        assert!(relative_error(binomial_at_most(n, p, k), at_most.exp()) <= 1e-8);
        assert!(relative_error(binomial_pmf(n, p, k), pmf.exp()) <= 1e-8);
    }
}

#[test]
fn known_overflow_chances_of_a_bucket() {
    assert!((poisson_above(64, 56.0) - 0.12911).abs() < 5e-6);
    assert!((poisson_above(74, 56.0) - 0.00882).abs() < 5e-6);
    assert!((poisson_above(128, 56.0) - 5.519e-17).abs() < 5e-21);
}

#[test]
fn edges_of_the_tails() {
    assert_eq!(poisson_above(0, 0.0), 0.0);
    assert_eq!(poisson_at_most(0, 0.0), 1.0);
    assert_eq!(poisson_pmf(0, 0.0), 1.0);
    assert_eq!(poisson_pmf(3, f64::INFINITY), 0.0);
    assert_eq!(poisson_above(3, f64::INFINITY), 1.0);
    assert!(poisson_pmf(3, -1.0).is_nan() && poisson_above(3, f64::NAN).is_nan());
    assert_eq!(binomial_above(5, 0.3, 5), 0.0);
    assert_eq!(binomial_at_most(5, 0.3, 9), 1.0);
    assert_eq!(binomial_pmf(5, 0.3, 6), 0.0);
    assert_eq!(binomial_pmf(0, 0.3, 0), 1.0);
    assert_eq!((binomial_above(5, 0.0, 0), binomial_above(5, 1.0, 4)), (0.0, 1.0));
    assert_eq!((binomial_pmf(5, 1.0, 5), binomial_pmf(5, 0.0, 5)), (1.0, 0.0));
    assert!(binomial_above(5, 1.5, 2).is_nan() && binomial_pmf(5, f64::NAN, 2).is_nan());
    for k in [0, 1, u64::MAX / 2, u64::MAX] {
        for x in [0.0, 1e-300, 0.5, 1.0, 1e300] {
            let sum = poisson_above(k, x) + poisson_at_most(k, x);
            assert!((sum - 1.0).abs() < 1e-8, "k {k} mean {x}: {sum}");
            assert!(!binomial_above(u64::MAX, x.min(1.0), k).is_nan());
        }
    }
}

#[test]
fn far_tails_stay_sensible_in_log_form() {
    // Far out the tail is its first term times a sum between 1 and the geometric one.
    let first = ln_poisson_pmf(1_000_001, 1e-6);
    assert!((ln_poisson_above(1_000_000, 1e-6) - first).abs() < 1e-9);
    let first = ln_binomial_pmf(1_000_000, 1e-9, 500_000);
    assert!(first < -9e6);
    assert!((ln_binomial_above(1_000_000, 1e-9, 499_999) - first).abs() < 1e-6);
}

#[test]
fn gamma_and_beta_match_the_references() {
    for &(a, x, p, q) in GAMMA {
        assert!(log_error(ln_gamma_p(a, x), p) < 1e-11, "P({a}, {x}) {}", ln_gamma_p(a, x));
        assert!(log_error(ln_gamma_q(a, x), q) < 1e-11, "Q({a}, {x}) {}", ln_gamma_q(a, x));
        let theirs = statrs::function::gamma::gamma_lr(a, x);
        assert!((gamma_p(a, x) - theirs).abs() < 1e-9, "statrs P({a}, {x})");
        assert!((gamma_p(a, x) + gamma_q(a, x) - 1.0).abs() < 1e-14);
    }
    for &(a, b, x, lower, upper) in BETA {
        let got = ln_beta_i(a, b, x);
        assert!(log_error(got, lower) < 1e-10, "I({x}; {a}, {b}) {got} for {lower}");
        let mirrored = ln_beta_i(b, a, 1.0 - x);
        assert!(log_error(mirrored, upper) < 1e-10, "1 - I({x}; {a}, {b}) {mirrored} for {upper}");
        let theirs = statrs::function::beta::beta_reg(a, b, x);
        assert!((beta_i(a, b, x) - theirs).abs() < 1e-9, "statrs I({x}; {a}, {b})");
    }
    for (a, x) in [(0.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (f64::NAN, 1.0), (f64::INFINITY, 1.0)] {
        assert!(gamma_p(a, x).is_nan() && gamma_q(a, x).is_nan());
        assert!(beta_i(a, 1.0, x).is_nan() || x > 0.0 && a > 0.0);
    }
    assert!(beta_i(1.0, 2.0, 1.5).is_nan());
    assert_eq!((beta_i(1.0, 2.0, 0.0), beta_i(1.0, 2.0, 1.0)), (0.0, 1.0));
}

#[test]
fn factorials_and_binomial_coefficients() {
    for &(n, k, want) in CHOOSE {
        let got = ln_choose(n, k);
        assert!((got - want).abs() < 1e-10f64.max(4e-16 * want), "{n} over {k}: {got} for {want}");
    }
    assert_eq!((ln_choose(7, 0), ln_choose(7, 7)), (0.0, 0.0));
    assert_eq!(ln_choose(3, 4), f64::NEG_INFINITY);
    // All functions here depend on this one.
    assert!((libm::lgamma(21.0) - 2432902008176640000f64.ln()).abs() < 1e-13);
    assert!((libm::lgamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-15);
}

#[test]
fn intervals_match_the_references() {
    for &(successes, trials, confidence, low, high) in INTERVALS {
        let got = exact_interval(successes, trials, confidence);
        let errors = (relative_error(got.0, low), relative_error(got.1, high));
        assert!(errors.0 <= 1e-9 && errors.1 <= 1e-9, "{successes} of {trials}: {errors:?}");
        // The upper end is as exact: it is 1 less the lower end of the complement.
        let mirror = exact_interval(trials - successes, trials, confidence);
        assert!((got.0 + mirror.1 - 1.0).abs() < 1e-15 && (got.1 + mirror.0 - 1.0).abs() < 1e-15);
    }
    assert_eq!(exact_interval(0, 0, 0.95), (0.0, 1.0));
    assert_eq!(exact_interval(3, 9, 1.0), (0.0, 1.0));
    for (s, n, c) in [(4, 3, 0.9), (1, 3, 1.1), (1, 3, f64::NAN), (1, 3, -0.1)] {
        let (low, high) = exact_interval(s, n, c);
        assert!(low.is_nan() && high.is_nan());
    }
    let (low, high) = exact_interval(1, u64::MAX, 0.999);
    assert!(low > 0.0 && low < high && high < 1e-17);
}

#[test]
fn normal_quantiles_match_the_references() {
    for &(p, want) in QUANTILES {
        let got = normal_quantile(p);
        assert!(relative_error(got, want) < 1e-12, "{p}: {got} for {want}");
    }
    assert_eq!(normal_quantile(0.5), 0.0);
    assert!((normal_quantile(5e-324) + 38.4674056).abs() < 1e-6);
    assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    assert_eq!(normal_quantile(1.0), f64::INFINITY);
    assert!(normal_quantile(-0.1).is_nan() && normal_quantile(f64::NAN).is_nan());
}

#[test]
fn bisect_refuses_what_it_cannot_solve() {
    assert_eq!(bisect(|x| x * x + 1.0, -1.0, 1.0, 1e-9), None);
    assert_eq!(bisect(|x| x, 1.0, -1.0, 1e-9), None);
    assert_eq!(bisect(|x| x, f64::NEG_INFINITY, 1.0, 1e-9), None);
    assert_eq!(bisect(|_| f64::NAN, -1.0, 1.0, 1e-9), None);
    assert_eq!(bisect(|x| x - 2.0, 2.0, 3.0, 0.0), Some(2.0));
    assert_eq!(bisect(|x| x - 3.0, 2.0, 3.0, 0.0), Some(3.0));
    let root = bisect(|x| x * x - 2.0, 0.0, f64::MAX, 0.0).unwrap();
    assert!((root - std::f64::consts::SQRT_2).abs() <= f64::EPSILON);
}

#[test]
fn rk4_follows_a_decay() {
    let mut state = [1.0];
    rk4(|_, y, slope| slope[0] = -y[0], &mut state, 0.0, 2.0, 200);
    assert!((state[0] - (-2.0f64).exp()).abs() < 1e-10);
}

#[test]
fn rk4_is_of_fourth_order_on_an_oscillator() {
    let error = |steps| {
        let mut state = [1.0, 0.0];
        let turn = |_: f64, y: &[f64], slope: &mut [f64]| {
            slope[0] = y[1];
            slope[1] = -y[0];
        };
        rk4(turn, &mut state, 0.0, 3.0, steps);
        (state[0] - 3f64.cos()).hypot(state[1] + 3f64.sin())
    };
    let ratio = error(50) / error(100);
    assert!((15.0..17.0).contains(&ratio), "ratio {ratio}");
}

#[test]
fn occupancy_moments_match_the_references() {
    for &(m, t, mean, variance) in OCCUPIED {
        let got = (mean_occupied(m, t), variance_occupied(m, t));
        assert!(relative_error(got.0, mean) < 1e-14, "mean {m} {t}: {}", got.0);
        assert!(relative_error(got.1, variance) < 1e-12, "variance {m} {t}: {}", got.1);
    }
    for (m, t) in [(0, 0), (0, 5), (1, 0), (5, 0)] {
        assert_eq!((mean_occupied(m, t), variance_occupied(m, t)), (0.0, 0.0));
        assert_eq!(power_spread(m, t, 3), 0.0);
    }
    assert_eq!((mean_occupied(1, 9), variance_occupied(1, 9)), (1.0, 0.0));
    assert!((variance_occupied(2, 3) - 0.25 * 0.75).abs() < 1e-16);
}

/// `Pr[X = x]`.
fn probability(law: &Occupancy, x: usize) -> f64 {
    law.expect(|occupied| f64::from(u8::from(occupied == x)))
}

#[test]
fn occupancy_by_enumeration() {
    for (m, t) in [(1usize, 3u32), (2, 5), (3, 4), (4, 6), (5, 5)] {
        let total = m.pow(t);
        let mut counts = vec![0u32; m + 1];
        for code in 0..total {
            let mut seen = 0u32;
            let mut rest = code;
            for _ in 0..t {
                seen |= 1 << (rest % m);
                rest /= m;
            }
            counts[seen.count_ones() as usize] += 1;
        }
        let mut law = Occupancy::new(m);
        law.throw_balls(u64::from(t));
        for (x, count) in counts.iter().enumerate() {
            let p = probability(&law, x);
            assert!((p - f64::from(*count) / total as f64).abs() < 1e-15, "{m} bins {t} balls");
        }
        for k in 1..6 {
            let want: f64 = (0..=m)
                .map(|x| f64::from(counts[x]) / total as f64 * (x as f64 / m as f64).powi(k))
                .sum();
            let got = expected_power(m as u64, u64::from(t), k as u32);
            assert!(relative_error(got, want) < 1e-14, "{m} {t} {k}: {got} for {want}");
        }
    }
}

#[test]
fn occupancy_programme_agrees_with_the_formulas() {
    for (m, t) in [(7u64, 3u64), (64, 100), (1000, 10), (1000, 700), (4096, 900), (300, 9000)] {
        let mut law = Occupancy::new(m as usize);
        law.throw_balls(t / 3);
        law.throw_balls(t - t / 3);
        let mean = mean_occupied(m, t);
        let variance = law.expect(|x| (x as f64 - mean).powi(2));
        assert!((law.expect(|_| 1.0) - 1.0).abs() < 1e-12);
        assert!(relative_error(law.expect(|x| x as f64), mean) < 1e-12);
        assert!(relative_error(variance, variance_occupied(m, t)) < 1e-9, "{m} {t}");
        for k in [1, 2, 7, 20, 64] {
            let want = law.expect(|x| (x as f64 / m as f64).powi(k));
            let got = expected_power(m, t, k as u32);
            assert!(relative_error(got, want) < 1e-11, "{m} {t} {k}: {got} for {want}");
        }
        let power = |x: usize| (x as f64 / m as f64).powi(3);
        let first = law.expect(power);
        let spread = law.expect(|x| (power(x) / first - 1.0).powi(2)).sqrt();
        let error = (power_spread(m, t, 3) / spread - 1.0).abs();
        assert!(
            spread > 0.1 || error < if variance > 1.0 { 0.02 } else { 0.15 },
            "{m} {t}: {spread} {error}"
        );
    }
    let mut full = Occupancy::new(20);
    full.throw_balls(u64::MAX);
    assert!((probability(&full, 20) - 1.0).abs() < 1e-12);
    let mut none = Occupancy::new(0);
    none.throw_balls(5);
    assert_eq!(probability(&none, 0), 1.0);
}

#[test]
fn expected_power_matches_the_references() {
    for &(m, t, k, want) in POWERS {
        let error = relative_error(expected_power(m, t, k), want);
        let (bins, probes) = (m as f64, f64::from(k));
        let bound = if m.min(t) <= 1 << 20 {
            t as f64 * 1e-15
        } else {
            let balls = t as f64;
            probes.powi(4) / (32.0 * bins * bins) + probes.powi(3) / (12.0 * bins * balls) + 1e-13
        };
        assert!(error <= bound, "m {m} t {t} k {k}: error {error:e}, bound {bound:e}");
    }
    assert_eq!((expected_power(9, 4, 0), expected_power(9, 0, 4)), (1.0, 0.0));
    assert_eq!(expected_power(1, 1, 64), 1.0);
    assert!(expected_power(0, 1, 2).is_nan());
    for k in [1, 64, 65, u32::MAX] {
        for (m, t) in [(1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX), (64, 1)] {
            assert!(expected_power(m, t, k) >= 0.0, "{m} {t} {k}");
        }
    }
}

#[test]
fn expected_power_is_continuous_at_the_switch() {
    // From the last exact m to the first expanded one the true value moves by about k / m.
    for (load, k) in [(0.01, 64), (1.1, 3), (1.1, 20), (1.1, 64), (2.0, 40), (5.0, 64)] {
        let m = 1u64 << 20;
        let t = (load * m as f64) as u64;
        let (before, exact, expanded) =
            (expected_power(m - 1, t, k), expected_power(m, t, k), expected_power(m + 1, t, k));
        let jump = relative_error(expanded * before / exact, exact);
        let bound = f64::from(k).powi(4) / m as f64 / m as f64 + 2.0 * t as f64 * 1e-15;
        assert!(jump < bound + 1e-10, "load {load} k {k}: jump {jump:e}, bound {bound:e}");
    }
}

proptest! {
    #[test]
    fn poisson_tails_are_complements_and_monotone(k in 0u64..100_000, log_mean in -13.0..16.0f64) {
        let mean = log_mean.exp();
        prop_assert!((poisson_above(k, mean) + poisson_at_most(k, mean) - 1.0).abs() < 1e-12);
        prop_assert!(ln_poisson_above(k + 1, mean) <= ln_poisson_above(k, mean));
        prop_assert!(ln_poisson_at_most(k + 1, mean) >= ln_poisson_at_most(k, mean));
        // Near the mode of large means, where the methods change over.
        let k = (mean + 4.0 * mean.sqrt() * (k as f64 / 50_000.0 - 1.0)).max(0.0) as u64;
        let step = poisson_above(k, mean) - poisson_above(k + 1, mean);
        prop_assert!((step - poisson_pmf(k + 1, mean)).abs() < 1e-12);
    }

    #[test]
    fn binomial_tails_step_by_the_term(n in 1u64..10_000_000, p in 0.0..1.0f64, z in -5.0..5.0f64) {
        let mean = n as f64 * p;
        let k = (mean + z * (mean * (1.0 - p)).sqrt()).max(0.0) as u64;
        prop_assert!((binomial_above(n, p, k) + binomial_at_most(n, p, k) - 1.0).abs() < 1e-12);
        let step = binomial_above(n, p, k) - binomial_above(n, p, k + 1);
        prop_assert!((step - binomial_pmf(n, p, k + 1)).abs() < 1e-11);
    }

    #[test]
    fn bisect_finds_the_root(root in -1e3..1e3f64, below in 0.1..1e3f64, above in 0.1..1e3f64) {
        let found = bisect(|x| (x - root).powi(3), root - below, root + above, 1e-9).unwrap();
        prop_assert!((found - root).abs() <= 1e-9);
    }

    #[test]
    fn first_true_equals_a_scan(low in 0u64..100, size in 0u64..100, threshold in 0u64..250) {
        let scan = (low..=low + size).find(|&x| x >= threshold);
        prop_assert_eq!(first_true(low, low + size, |x| x >= threshold), scan);
        let whole = first_true(0, u64::MAX, |x| x >= u64::MAX - threshold);
        prop_assert_eq!(whole, Some(u64::MAX - threshold));
        prop_assert_eq!(first_true(low + 1, low, |_| true), None);
    }

    #[test]
    fn first_true_near_equals_a_scan(
        guess in 0u64..120, step in 0u64..40, most in 1u64..100, threshold in 0u64..120,
    ) {
        let scan = (1..=most).find(|&x| x >= threshold);
        prop_assert_eq!(first_true_near(guess, step, most, |x| x >= threshold), scan);
        let mut calls = 0;
        let found = first_true_near(1 << 40, 1, 1 << 48, |x| {
            calls += 1;
            x >= (1 << 40) - threshold
        });
        prop_assert!(found == Some((1 << 40) - threshold) && calls <= 17, "{calls} calls");
    }
}
