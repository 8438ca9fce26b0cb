"""The hand-written wrong changes, which tests look at each file first, and which drawn changes are no wrong ones."""

from __future__ import annotations

LOCKSTEP, INNERS, SPECTRAL = (
    "tests/test_lockstep.py",
    "tests/contract/test_inners.py",
    "tests/contract/test_spectral_inner.py",
)
CORRECTIVE = "tests/contract/test_corrective.py tests/contract/test_simplex_qp.py"
CERTIFICATES = "tests/test_certificates.py"
BY_HAND = f"{CERTIFICATES} -k 'not witness and not prox_point and not reports and not projects'"
"""Those of its tests that do not draw hundreds of cases."""
TRUTH = "tests/contract/test_methods.py -k certifi"
DRIVER = "tests/test_driver.py tests/test_endings.py tests/contract/test_counts.py"
HONESTY = "tests/test_honesty.py tests/test_bad_answers.py tests/test_safety.py"
INEXACT = (
    "tests/test_inexact_oracles.py tests/test_interruption.py -k 'listen or told or take_the or worst or says_that or "
)
INEXACT += "deadline'"
RESUMING = "tests/contract/test_resuming.py"
EVALUATIONS, OWN = "tests/test_evaluations.py", "tests/test_own_parts.py"

FIRST: dict[str, tuple[str, ...]] = {
    "inner/condg.py": (f"{LOCKSTEP} -k ncgs-ii", INNERS),
    "inner/corrective.py": (f"{CORRECTIVE} {INNERS}",),
    "points/active_set.py": ("tests/test_active_set.py", CORRECTIVE),
    "inner/exact.py": (INNERS,),
    "linalg/simplex_qp.py": (f"{CORRECTIVE} {INNERS}",),
    "inner/spectral.py": (f"{INNERS} {SPECTRAL} -k 'spectral- or at_its_limit or larger_set or longer_step'", SPECTRAL),
    "inner/stops.py": (INNERS, LOCKSTEP),
    "certificate.py": (BY_HAND, CERTIFICATES),
    "solvers/accelerated_gradient.py": (f"{LOCKSTEP} tests/test_baselines.py -k accelerated", TRUTH),
    "solvers/cgs.py": (f"{LOCKSTEP} tests/test_baselines.py -k 'cgs and not ncgs'",),
    "solvers/frank_wolfe.py": (f"{LOCKSTEP} tests/test_baselines.py -k frank", TRUTH, f"{OWN} -k rule"),
    "solvers/evaluation.py": (EVALUATIONS,),
    "solvers/ncgs.py": (
        f"{LOCKSTEP} -k 'ncgs and not ncgs-ii and not ncgs-vr and not stochastic'",
        TRUTH,
        "tests/test_step_scale.py",
        "tests/test_adaptive.py -k iterate",
        "tests/test_adaptive.py tests/test_warm_start.py",
    ),
    "solvers/ncgs_ii.py": (f"{LOCKSTEP} -k ncgs-ii", TRUTH, "tests/test_step_scale.py"),
    "solvers/ncgs_vr.py": (
        f"{LOCKSTEP} tests/test_theorems.py -k vr",
        "tests/test_adaptive.py tests/test_warm_start.py",
    ),
    "solvers/projected_gradient.py": (f"{LOCKSTEP} tests/test_baselines.py -k projected",),
    "solvers/sagafw.py": (f"{LOCKSTEP} -k sagafw",),
    "solvers/schedules.py": (f"{LOCKSTEP} -k cgs",),
    "solvers/sfw.py": (f"{LOCKSTEP} -k sfw",),
    "solvers/smoothness.py": ("tests/test_smoothness.py", EVALUATIONS),
    "solvers/stochastic_frank_wolfe.py": (f"{LOCKSTEP} -k sfw", "tests/test_theorems.py -k uniform"),
    "solvers/stochastic_ncgs.py": (f"{LOCKSTEP} -k stochastic", "tests/test_theorems.py -k law"),
    "solvers/svfw.py": (f"{LOCKSTEP} -k svfw",),
    "solvers/warm_start.py": ("tests/test_warm_start.py",),
    "estimators/minibatch.py": (f"{LOCKSTEP} -k sfw", "tests/test_equivalences.py"),
    "estimators/saga.py": (f"{LOCKSTEP} -k sagafw",),
    "estimators/svrg.py": (f"{LOCKSTEP} -k svfw",),
    "driver/ending.py": (f"{HONESTY} tests/test_regressions.py", DRIVER),
    "driver/checkpoint.py": ("tests/test_checkpoints.py", RESUMING),
    "storage/snapshot.py": ("tests/test_stored.py", "tests/test_checkpoints.py", RESUMING),
    "storage/stored.py": ("tests/test_stored.py", "tests/test_checkpoints.py"),
    "driver/counting.py": (DRIVER, HONESTY),
    "protocols.py": ("tests/test_contracts.py", DRIVER),
    "driver/metrics.py": (BY_HAND, INEXACT, DRIVER),
    "driver/run.py": (DRIVER, HONESTY, "tests/test_signals.py"),
    "driver/asked.py": (BY_HAND, DRIVER),
    "driver/reached.py": (DRIVER, HONESTY),
    "driver/observation.py": (BY_HAND, DRIVER, EVALUATIONS),
    "driver/verification.py": (BY_HAND, DRIVER, HONESTY, RESUMING),
    "driver/audit.py": ("tests/test_safety.py", INEXACT, HONESTY, RESUMING),
    "driver/vertices.py": (HONESTY,),
    "driver/stopping.py": (DRIVER,),
    "runtime/signals.py": (INEXACT,),
}
"""The files of the core, each with pytest's arguments: one run for each, the most telling first."""

LATER = (
    f"{DRIVER} tests/contract/test_options.py tests/test_baselines.py tests/test_bad_answers.py tests/test_smoothness.py "
    f"{INNERS} {CORRECTIVE} tests/test_carried_values.py tests/test_regressions.py tests/test_equivalences.py "
    "tests/contract/test_methods.py",
    f"{LOCKSTEP} tests/test_theorems.py tests/test_certificates.py tests/test_low_rank_runs.py {SPECTRAL} tests/test_adaptive.py "
    "tests/test_warm_start.py",
)
"""What runs on a change that got through these: first the quick files of the core's tests, then the long ones."""

HAND_WRITTEN: dict[str, list[tuple[str, str, str]]] = {
    "inner/condg.py": [
        ("gamma * V / norm2(v_t - u_t)", "V / norm2(v_t - u_t)", "the exact line search without gamma"),
        ("min(1.0, gamma * V", "min(1.0, 0.5 * gamma * V", "half of the exact line search"),
        ("g + (1 / gamma) * (u_t - u)", "g - (1 / gamma) * (u_t - u)", "the prox term with the wrong sign"),
        ("g + (1 / gamma) * (u_t - u)", "g + gamma * (u_t - u)", "the prox term times gamma instead of over it"),
        ("inner(direction, u_t - v_t)", "inner(g, u_t - v_t)", "the gap of the linear part alone"),
        ("inner(direction, u_t - v_t)", "inner(direction, u - v_t)", "the gap at the centre, not at the inner iterate"),
        ("norm2(u_t - u) / gamma) >= V", "norm2(u_t - u) / gamma) <= V", "stops while the gap is too large"),
        ("t > self.max_calls", "t >= self.max_calls", "one step fewer than calls were allowed"),
        ("Prox(u_t, inf, memory)", "Prox(u_t, 0.0, memory)", "a gap of 0 that nobody has measured"),
    ],
    "inner/corrective.py": [
        ("z = u - gamma * g", "z = u + gamma * g", "the prox centre on the wrong side"),
        ("direction = (1 / gamma) * (u_t - z)", "direction = (1 / gamma) * (u - z)", "the slope at the centre"),
        ("inner(direction, u_t - v_t)", "gamma * inner(direction, u_t - v_t)", "a gap that is too small by gamma"),
        ("hull = memory.with_atom(u)", "hull = memory", "the centre is not offered as an atom"),
        ("- 2 * larger.gram[-1, :-1]", "- larger.gram[-1, :-1]", "a distance without its 2 in -2<a, b>"),
    ],
    "points/active_set.py": [
        ("if norm2(other - atom) == 0.0:", "if norm2(other - atom) >= 0.0:", "any atom taken for the one that is looked for"),
        ("used = np.flatnonzero(weights)", "used = np.arange(len(weights))", "atoms of weight 0 are kept"),
    ],
    "inner/exact.py": [
        ("project(u - gamma * g)", "project(u - g)", "the projection without the step size"),
        ("project(u - gamma * g)", "project(u + gamma * g)", "a step uphill"),
    ],
    "linalg/simplex_qp.py": [
        ("(1 - free.sum()) / constant.sum()", "free.sum() / constant.sum()", "weights that do not sum to 1"),
        ("slope = gram @ w - pull", "slope = gram @ w + pull", "the slope with the wrong sign of its linear part"),
    ],
    "inner/spectral.py": [
        ("domain.trace / gamma * (known", "1 / gamma * (known", "the gap's bound without the largest sum of values"),
        ("V = GAP_SHARE * allowed if bound", "V = 0.0 if bound", "a gap of 0 where only its bound is known"),
        ("return y - float(np.linalg", "return y + float(np.linalg", "the limit on the wrong side of what is coupled"),
        ("z, times = u - gamma * g,", "z, times = u - 2 * gamma * g,", "twice the step"),
        ("/ gamma * (sqrt(norm2(u_t)) +", "* gamma * (sqrt(norm2(u_t)) +", "what is rounding, on another scale"),
    ],
    "inner/stops.py": [("max(self.floor, self.c * moved)", "self.floor + self.c * moved", "the sum instead of the larger")],
    "certificate.py": [
        ("max(self.gap, 0.0) / (self.stretch * self.gamma)", "max(self.gap, 0.0)", "the error without 1/gamma"),
        ("- self.prox)) / (self.stretch * self.gamma)", "- self.prox)) / self.gamma", "the norm without the stretch"),
        ("self.stretch * (self.norm + self.error)) ** 2", "self.stretch * self.norm) ** 2", "an upper bound without the error"),
        ("(self.stretch * (self.norm", "(1.0 * (self.norm", "the longer step's mapping taken for the shorter one's"),
        ("max(self.norm - self.error, 0.0)", "self.norm", "a lower bound without the error"),
        ("return bound if bound == bound else inf", "return bound", "a NaN as an upper bound"),
        ("return all(same(getattr(self", "return any(same(getattr(self", "certificates equal where one field is"),
        ("linear_gap(problem.domain, direction, prox)", "linear_gap(problem.domain, direction, x)", "the gap of the point"),
        ("* difference(prox, x)", "* difference(x, prox)", "the witness's slope with the wrong sign"),
        ("return witness(problem, self.x", "return self or witness(problem, self.x", "verify that verifies nothing"),
        ("0.0) + rounding + worst(reports)", "0.0) + worst(reports)", "a gap without its rounding"),
        ("0.0) + rounding + worst(reports)", "0.0) + rounding", "a gap without the linear oracle's error"),
        ("rounding=error)", "rounding=0.0)", "a mapping without its rounding"),
    ],
    "solvers/ncgs.py": [
        ("alpha, beta = 2 / (k + 1), 1", "alpha, beta = 2 / (k + 2), 1", "alpha_k = 2/(k+2)"),
        ("beta = 2 / (k + 1), 1 / (2 * L)", "beta = 2 / (k + 1), 1 / L", "beta_k = 1/L"),
        ("self.stretch * alpha / 4", "self.stretch * alpha / 2", "lambda_k beyond the proof's interval"),
        ("grad_at(objective, theta_md)", "grad_at(objective, theta)", "the gradient at theta, not theta_md"),
        ("theta_md - (beta / lam) * (theta - theta_k)", "theta_md - (theta - theta_k)", "theta_ag without beta/lambda"),
        ("Certificate(theta, theta_k, certified, gap", "Certificate(theta_k, theta, certified, gap",
         "point and witness changed places"),
        ("gap, step=long)", "gap, step=None)", "a multiple of the theorem's step that is certified as the theorem's"),
        ("rho <= L_k + noise", "rho >= L_k + noise", "accepts an L_k that smoothness refutes"),
        ("step=beta if L_k < L else None", "step=None", "a long step's certificate without its step"),
    ],
    "solvers/ncgs_ii.py": [
        ("(1 - alpha) * state.x + alpha * state.theta", "alpha * state.x + (1 - alpha) * state.theta", "the weights swapped"),
        ("lam = k * beta / 2", "lam = (k + 1) * beta / 2", "lambda_k of the next step"),
        ("grad, theta_md, beta, chi", "grad, theta, beta, chi", "theta_ag's prox from theta, not theta_md"),
        ("Certificate(theta_md, theta_ag.point", "Certificate(state.x, theta_ag.point", "certifies where no gradient was"),
        ("beta = self.step_scale * gamma", "beta = gamma", "step_scale without effect"),
    ],
    "solvers/ncgs_vr.py": [
        ("return 1 / (3 * objective.term_smoothness)", "return 1 / (2 * objective.term_smoothness)", "lambda = 1/(2L)"),
        ("max(1, int(n ** (1 / 3) + 1e-9))", "max(1, int(n ** (1 / 2) + 1e-9))", "epochs of sqrt(n)"),
        ("estimate(problem.objective, theta, state.snapshot, k,", "estimate(problem.objective, theta, state.snapshot, k + 1,",
         "snapshots one step early"),
        ("default_rng((self.seed, k))", "default_rng(self.seed)", "the same batch in every step"),
        ("solve(problem.domain, v, theta, lam", "solve(problem.domain, v, theta, 2 * lam", "twice lambda"),
        ("x=state.snapshot.x, lam=max", "lam=max", "a bad epoch is not taken back"),
    ],
    "solvers/stochastic_ncgs.py": [
        ("weights = k * (k + 1.0)", "weights = k * 1.0", "the random index with the wrong law"),
        ("estimate(problem.objective, theta_md", "estimate(problem.objective, state.theta", "sampled at theta, not theta_md"),
        ("x=theta_md, L=L", "x=theta_ag.point, L=L", "reports theta_ag, not theta_md"),
    ],
    "solvers/cgs.py": [
        ("(3 / (k + 2), 3 * L / (k + 1))", "(2 / (k + 2), 3 * L / (k + 1))", "g_k = 2/(k+2)"),
        ("problem.domain.diameter**2 / (k", "problem.domain.diameter / (k", "e_k with D, not D^2"),
        ("state.k - start >= N", "state.k - start > N", "restarts one step late"),
        ("phase + 1, y", "phase + 1, x", "restarts from x, not from y"),
        ("grad_at(problem.objective, z)", "grad_at(problem.objective, y)", "the gradient at y, not z"),
    ],
    "solvers/frank_wolfe.py": [
        ("along.gap / (along.L * along.length2)", "along.gap / (2 * along.L * along.length2)", "half of the short step"),
        ("2 / (along.k + 2)", "2 / (along.k + 1)", "the open-loop step of the step before"),
        ("if not 0 <= t <= 1", "if not t <= 1", "a rule that steps out of the set"),
        ("t**2 * M / 2 * length2", "t**2 * M * length2", "a sufficient decrease that asks for too little"),
        ("Certificate(x, x, 1 / (2 * L)", "Certificate(x_next, x_next, 1 / (2 * L)", "certifies the next iterate"),
    ],
    "solvers/projected_gradient.py": [("1 / (2 * state.L)", "1 / state.L", "twice the step size")],
    "solvers/accelerated_gradient.py": [
        ("project(state.slow - lam * grad)", "project(state.slow - beta * grad)", "the slow sequence with the fast one's step"),
        ("project(x_md - beta * grad)", "project(state.x - beta * grad)", "x_ag from the last x_ag, not x_md"),
    ],
    "solvers/sagafw.py": [("n ** (1 / 3)", "n ** (2 / 3)", "batches of n^(2/3)")],
    "solvers/svfw.py": [("sample or setup.steps", "sample or m", "snapshots from a sample that is too small")],
    "solvers/sfw.py": [("lambda k: fixed", "lambda k: k", "growing batches where a size was asked for")],
    "solvers/stochastic_frank_wolfe.py": [
        ("sqrt(h0 / (L * D**2))", "h0 / (L * D**2)", "the step without its root"),
        ("self.smoothness or problem.objective.smoothness", "problem.objective.smoothness", "F's L in place of each term's"),
        ("x=x + t * (s - x)", "x=x - t * (s - x)", "away from the vertex"),
        ("domain.diameter**2 / 2", "domain.diameter**2", "h_0 twice as far from F* as smoothness says"),
        ("int(rng.integers(steps))", "1 + int(rng.integers(steps))", "never theta_0, and theta_T"),
    ],
    "solvers/schedules.py": [
        ("1 / self.steps if eta is None else eta()", "1 / self.steps", "CGS's own accuracy forgotten"),
        ("gamma * self.eps / 4", "self.eps / 4", "a floor on another scale"),
        ("relative(self.c * share", "relative(self.c", "more inner error than the proof can spare"),
    ],
    "solvers/smoothness.py": [
        ("return 100 * noise >= L or rho <= L + noise", "return True", "backtracking that accepts every L"),
        ("scale = 2 / length2", "scale = 1 / length2", "half the curvature"),
        ("descent_fun=before)", "descent_fun=after)", "the value of another point passed on"),
        ("replace(state, L=2 * state.L)", "replace(state, L=state.L / 2)", "L goes down where it must go up"),
        ("before - linear), scale", "before + linear), scale", "the linear part with the wrong sign"),
        ("sqrt(change) / sqrt(distance)", "change / distance", "the squared Lipschitz quotient"),
    ],
    "solvers/evaluation.py": [
        ("np.array_equal(x, y))", "True)", "any two arrays taken for one point"),
        ("if known.fun is not None and same_point", "if known.fun is not None or same_point", "the value of another point"),
    ],
    "solvers/warm_start.py": [
        ("2 / (k + 2) * (s - x)", "2 / (k + 3) * (s - x)", "a first step that does not reach the vertex"),
        ("LMO_ACCURACY * state.gap)", "10 * state.gap)", "an oracle that is too rough for the gap"),
    ],
    "estimators/minibatch.py": [
        ("objective.n_terms)[:size]", "objective.n_terms)[1:size]", "one term less than asked for"),
        ("self.size(k)", "self.size(k + 1)", "the batch of the next step"),
    ],
    "estimators/svrg.py": [
        ("(k - 1) % self.epoch", "k % self.epoch", "an epoch that is one step short at first"),
        ("return change + memory.grad", "return change", "the snapshot's gradient forgotten"),
        ("term_rows(memory.x, batch)", "term_rows(x, batch)", "no change at all is seen"),
        ("memory.rows[batch]", "memory.rows[: len(batch)]", "the rows of other terms"),
    ],
    "estimators/saga.py": [
        ("(len(J) / len(terms)) *", "(1 / len(terms)) *", "the table's mean drifts"),
        ("rows[J] = new_rows", "rows[J] += new_rows", "rows added up"),
        ("term_rows(x, terms[I]) - rows[I]", "term_rows(x, terms[I]) - rows[J[0]]",
         "every term against the same row"),
        ("terms[I]) + mean", "terms[I])", "the table's mean forgotten"),
        ("I, J = self.pick(len(terms), rng), np.unique", "I = J = np.unique", "one batch where two independent ones are needed"),
    ],
    "driver/counting.py": [
        ("fixed = {counter: 1 for", "fixed = {counter: 0 for", "oracle calls for free"),
        ('fixed["ifo"] = target.n_terms', 'fixed["ifo"] = 1', "a full gradient for the price of a term's"),
        ("len(args[1])}", "len(args[1]) - 1}", "one term of a batch for free"),
        ("if not isfinite(part if", "if (lambda n: n != n)(part if", "infinite answers let through"),
        ("for noun, of in finite:", "for noun, of in finite[:1]:", "a gradient that comes with its value is not checked"),
    ],
    "protocols.py": [
        ('"beyond": Oracle(("ub",)', '"beyond": Oracle(("lo",)', "upper bounds counted as linear minimisations"),
        ('Oracle(\n        ("values", "fo")', 'Oracle(\n        ("fo",)', "values that come with a gradient for free"),
        ("if not has(thing, name)] for contract", "if has(thing, name)] for contract", "says what is there, not what is missing"),
    ],
    "driver/metrics.py": [
        ("z = x - gamma * grad", "z = x - 2 * gamma * grad", "the mapping of twice the step size"),
        ("Certificate(x, prox, gamma, gap, on", "Certificate(x, prox, gamma, 0.0, on", "an inexact prox taken for exact"),
        ("gap += worst(reports)", "pass", "a mapping without the linear oracle's error"),
        ("(eps or 0.0) / 100", "(eps or 0.0) * 100", "measures too roughly for its tolerance"),
    ],
    "driver/run.py": [
        ("state.k % asked.every == 0 or ending", "state.k % asked.every == 0", "no row for the last step"),
        ("<= stop.progress(last", ">= stop.progress(last", "a run that makes progress is called stalled"),
        ('if action == "raise" and cause is not None', "if False", "a signal ends one run of a program and not the program"),
        ("is None or isinstance(interruption, Terminated)", "is None", "SIGTERM during the check after Ctrl-C is lost"),
    ],
    "driver/asked.py": [
        ("certificate.gap if self.by_gap else certificate.upper", "certificate.lower", "the best by its lower bound"),
    ],
    "driver/reached.py": [
        ("fun < self.lowest.fun", "fun > self.lowest.fun", "the highest iterate for the lowest"),
    ],
    "driver/observation.py": [
        ("asked.rank(certificate) < asked.rank(reached.best)", "asked.rank(certificate) > asked.rank(reached.best)",
         "keeps the worst"),
        ("last.k if before else state.k", "state.k", "the step after the iterate that is returned"),
        ("if same_point(point, x))", "if True)", "the value of another point recorded"),
    ],
    "driver/verification.py": [
        ('again.status == "converged"', "True", "any ending of the check is a confirmation"),
        ("again = stop(replace(record, mapping=certificate.upper", "again = stop(replace(record, mapping=0.0", "checks no bound"),
        ("gamma=1 / (2 * L), step=claim.step or claim.gamma", "step=claim.step", "verified for a step size that it chose itself"),
        ("self.audit.smoothness(L) if L else", "L if L else", "converged with an L that the run has refuted"),
        ("if gap_eps < noise and gap", "if False and gap", "a gap below its rounding is waited for until a budget ends"),
        ('if hope is not None and hope.status == "converged"', "if False", "ends although the other measure is in reach"),
    ],
    "driver/audit.py": [
        ("ceil(1.1 * k)", "ceil(11 * k)", "measures far too rarely"),
        ("if self.outside(state.x)", "if False", "points outside of the set let through"),
        ("isfinite(state.x).all()", "isfinite(state.x).any()", "a point that is finite somewhere let through"),
        ("note(next_look=later(state.k))", "note(next_look=state.k)", "the set is asked after every step"),
        ("MAX_OUTSIDE_CALLS if converged else 0", "0", "a set that has nothing but a linear oracle is never asked"),
        ("max(self.reports)", "min(self.reports)", "the mildest of the linear oracle's errors"),
        ("self.reports.clear()", "pass", "every error heard again and again"),
        ("old + linear + (1 + 1e-6)", "old - linear + (1 + 1e-6)", "F may rise by what its gradient says that it falls"),
        ("if seen > L * (1 + 1e-6)", "if seen > 2 * L", "half of the true smoothness passes"),
    ],
    "driver/vertices.py": [
        ("if excess > tolerated:", "if False:", "an oracle that is worse than its earlier answers is not refused"),
        ("(kept, *known)[:REMEMBERED]", "()", "no answer is remembered"),
        ("direction - favour * unit", "direction + favour * unit", "the next best vertex is never asked for"),
        ("domain.compare(direction, answer, seen, values, domain.type_error(direction, answer))", "pass",
         "the answers to the probes are not looked at"),
        ("return self.precision / 2 * sqrt(norm2(direction))", "return 0.0 * sqrt(norm2(direction))",
         "answers in float16 certified as if they were exact"),
        ("self.refuted = True", "pass", "a certificate by an oracle that was shown to be wrong"),
    ],
    "driver/ending.py": [
        ("run.verifier.probed(run.verifier.verify(claimed), hurried(run, reason))", "claimed",
         "returns what was claimed, not what was verified"),
        ("return None, Reason(\"failed\", f\"{reason.message} {unfit}\")", "pass", "a certificate of a point outside of the set"),
        ("and not run.verifier.satisfied(certificate))", "and False)", "converged, whatever the check of the last iterate found"),
        ("run.reached.unconfirmed if reason.status == \"out_of_budget\" else None", "None",
         "a claim that was refuted is not spoken of"),
        ("if pending and run.verifier.satisfied(certificate)", "if pending",
         "of a refuted claim, does not say that the budget ended"),
        ("lowest.fun >= run.observer.value", "lowest.fun <= run.observer.value", "speaks of a lower F where there is none"),
        ("return not_confirmed(run, reason, certificate)", "return Reason('unverified', reason.message)",
         "the bound of a claim that the check did not confirm"),
        ("reason = run.verifier.restated(reason, certificate)", "pass", "the bound of the claim beside that of the check"),
    ],
    "driver/checkpoint.py": [
        *((
            "setattr(reached, name, moving[name])",
            f"setattr(reached, name, getattr(reached, name) if name == {field!r} else moving[name])",
            f"{field} is not restored",
        ) for field in (
            "state", "record", "best", "best_k", "current_k", "lowest", "unconfirmed", "next_check", "findings", "next_measure",
            "next_gap",
        )),
        ("vars(reached.counts).update(vars(Counts(**data[\"counts\"])))", "pass", "the counts start from 0"),
        ("reached.watch = Watch(**data[\"spent\"])", "pass", "the time starts from 0"),
        ("objective.remember(remembered)", "pass", "what the objective remembered is lost"),
        ("self.keep = False", "self.keep = True", "a damaged checkpoint takes the good one's place"),
        ("if not changed:", "if True:", "another run's state is put in before it is refused"),
        ("if changed:", "if False:", "another run is not refused"),
        ("self.data[\"k\"] == self.saved", "self.data[\"k\"] != self.saved", "only what was saved is saved"),
    ],
    "storage/snapshot.py": [
        ("there = getattr(thing, \"__dict__\", {})", "there = {}", "what was cached is lost, and attributes without a word"),
        ("base.validate(thing)", "pass", "the class's own function is not called"),
        ("in (int, float) and isinstance(value, bool))", "in (int, float) and False)", "True is taken for a number"),
        ("elif shape is not None and value.shape != shape:", "elif False:", "structured points of any shape"),
        ("not 0 <= number < len(self.made)", "number >= len(self.made)", "objects are counted from the end"),
        ("if id(key) in self.numbers]", "if True]", "a weak reference keeps its object"),
        ("set(entry.fields) <= set(fields) <=", "set(fields) <=", "an object without some of its fields"),
        ("dictionary[self.at(number)] = self.put(value)", "pass", "cached products and distances are lost"),
        ("array.flags.writeable = writeable", "pass", "read-only arrays become writeable"),
        (".transpose(np.argsort(axes).tolist())", ".transpose(axes)", "another order of the axes"),
    ],
    "storage/stored.py": [
        ("for base in reversed(cls.__mro__) if base in CLASSES)", "for base in [cls])", "base classes do not validate"),
        ("isinstance(value, cached_property)", "False", "what was cached is not stored"),
        ("or not np.isfinite(found).all()", "", "NaN in an array"),
    ],
    "driver/stopping.py": [
        ("if value <= self.eps", "if value >= self.eps", "converged where it is not"),
        ("self.used(record) >= self.limit", "self.used(record) > self.limit", "one step more than the budget"),
        ("+ price.get(self.oracle, 0) > self.limit", "> self.limit", "the price of the next call forgotten"),
        ("max(reasons, key=_certainty", "min(reasons, key=_certainty", "of two reasons the one that says less"),
        ("if not a or not b", "if not a and not b", "'both' that means 'either'"),
        ("self.rtol * abs(min(early))", "self.rtol", "stagnation on the scale of F"),
    ],
    "runtime/signals.py": [
        ("(receiver,) if alone else (*_RECEIVERS", "(*_RECEIVERS", "a run inside a run is heard outside"),
        ("(receiver,) if alone else (*_RECEIVERS.get(), receiver)", "(receiver,)", "whoever listens is alone"),
        ("max((report.error", "min((report.error", "the mildest error"),
        ("if not receivers:", "if receivers:", "silent where nobody listens"),
        ("_RECEIVERS.reset(token)", "pass", "goes on listening when done"),
        ("reports.append(Inexact(error, sentence))", "reports.append(Inexact(0.0, sentence))", "an error of 0"),
    ],
}  # fmt: skip
"""(old text, which occurs once in the file; new text; what is wrong with it) for each file of the core."""

EQUIVALENT: dict[tuple[str, str], str] = {
    ("solvers/smoothness.py", "return 2.0"): "the linear oracle answers x itself: x is stationary, whatever L is",
    (
        "inner/spectral.py",
        "while high < inf and high - low >= 0.01 * high > EPS * abs(self.level):",
    ): "one halving more where the bracket is a hundredth wide to the last bit: its upper end is a bound before and after",
    (
        "inner/spectral.py",
        "if len(values) <= most:",
    ): "the block is all there is, so this pass is the last and its point stands: its gap is bounded in another way",
    (
        "inner/spectral.py",
        "if spare >= most:",
    ): "one pass less where passes no longer lower the gap: what it is by then, a bound to rounding, is said",
}
"""(file, line after the change) -> why a drawn change breaks nothing that is promised."""
