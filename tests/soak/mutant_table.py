# ruff: noqa: E501
"""The table of ``mutants.py``: faults that somebody could make, each with the tests that ought to notice."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """``was`` stands in exactly one file of the product; ``tests`` are words for pytest."""

    package: str
    name: str
    was: str
    now: str
    tests: str


E, H, P, X = "evaluation", "hooks", "probes", "experiments"
STATISTICS = "tests/evaluation/test_statistics.py"
DEPENDENCE = "tests/evaluation/test_dependence.py"
KNOWN = "tests/evaluation/grading/test_known_answers.py"
PRESENTING = "tests/evaluation/protocols/test_presenting.py"
GAP = "tests/evaluation/protocols/test_compositionality_gap.py"
GATE = "tests/evaluation/protocols/test_double_gate.py"
PAIRS = "tests/evaluation/protocols/test_reasoning_gap.py"
STAD = "tests/evaluation/protocols/test_scaffolding.py"
JOURNAL = "tests/evaluation/test_journal.py -k 'not process and not beside'"
PIPELINE = "tests/evaluation/test_pipeline.py -k 'not killed and not end_to_end'"
PROFILES = "tests/evaluation/analyses/test_profiles.py"
PATCHING = "tests/probes/test_patching.py"
MATCHING = "tests/probes/test_matching.py"
REFERENCES = "tests/probes/test_references.py"
CONTRASTS = "tests/probes/test_contrasts.py"
NEURONS = "tests/probes/test_neurons.py"
MASSES = "tests/hooks/test_masses_and_capture.py"
READING = "tests/hooks/test_reading_and_editing.py"
SURROUNDINGS = "tests/hooks/test_surroundings.py"
EFFECTS = "tests/experiments/test_options_reach.py"
FIGURES = "tests/experiments/figures/test_figures.py"
CONTENTS = "tests/experiments/figures/test_contents.py"
TRAINING = "tests/experiments/organism/test_tokenizer_and_training.py"
RECIPES = "tests/experiments/interventions/test_recipes_and_data.py"
REWARD = "tests/experiments/interventions/test_reward.py"
GRADES = "tests/evaluation/grading/test_grade_table.py"
BOUNDS = "tests/evaluation/protocols/test_bounds.py"
VERDICTS = "tests/probes/test_verdicts.py"
READOUT = "tests/probes/test_readout.py"
STEERING = "tests/probes/test_steering.py"
INTERCHANGE = "tests/hooks/test_interchange.py"
CAUSE = "tests/experiments/diagnosis/test_answers.py"
OPENED = "tests/experiments/diagnosis/test_inside.py"
AUDIT = "tests/experiments/test_auditing.py"
VERIFY = "tests/experiments/test_verify.py"
ROWS = "tests/hooks/test_rows.py"
LIVE = "tests/probes/test_lookback_live.py"
READINGS = "tests/probes/test_readings.py"
SLOTS = "tests/probes/test_answer_slots.py"
SWEEPS = "tests/probes/test_patching_sweeps.py"
BEYOND = "tests/probes/test_patching_contrasts.py"
DRAWN = "tests/experiments/studies/test_figures_of_studies.py"

# fmt: off
MUTANTS = (
    # statistics
    Mutant(E, "bootstrap seed ignored", "draws = np.random.default_rng(seed).multinomial(", "draws = np.random.default_rng(0).multinomial(", STATISTICS + " -k seed"),
    Mutant(E, "equal pairs bounded over cases, not clusters", "int(dependence.effective(clusters)) if clusters and shared else len(difference)", "len(difference)", STATISTICS + " -k discord"),
    Mutant(E, "Holm multiplies by all tests", "(len(known) - rank) for rank, i", "len(known) for rank, i", STATISTICS + " -k holm"),
    Mutant(E, "Holm without its running maximum", "np.minimum(np.maximum.accumulate(steps), 1)", "np.minimum(np.asarray(steps), 1)", STATISTICS + " -k holm"),
    Mutant(E, "Holm counts tests that were not made", "steps = [float(p_values[i] or 0) * (len(known) - rank)", "steps = [float(p_values[i] or 0) * (len(p_values) - rank)", STATISTICS + " -k holm"),
    Mutant(E, "McNemar on all pairs", "stats.binomtest(a_only, n, 0.5)", "stats.binomtest(a_only, len(a), 0.5)", STATISTICS + " -k mcnemar"),
    Mutant(E, "Korn and Graubard without the ratio of t quantiles", "min(float(known) * ratio**2, float(n))", "min(float(known), float(n))", STATISTICS + " -k 'rate_over or clusters'"),
    Mutant(E, "d50 at one half or above", "if rate > 0.5:", "if rate >= 0.5:", STATISTICS + " -k d50"),
    Mutant(E, "d50 band with its ends swapped", "crossing(d, [limit.high for limit in limits])", "crossing(d, [limit.low for limit in limits])", STATISTICS + " -k d50"),
    Mutant(E, "linearized error not scaled by n", "dependence.mean(n * (columns @ slopes), clusters)", "dependence.mean(columns @ slopes, clusters)", STATISTICS + " -k 'bootstrap or cluster'"),
    # protocols
    Mutant(E, "gap divided by all cases", "count=count,\n        value=count / n if n else None,\n        interval=interval.method", "count=count,\n        value=count / total if n else None,\n        interval=interval.method", GAP + ' -k gap'),
    Mutant(E, "abstaining where nobody can know is not right", 'or (row.outcome == "abstained" and row.unknowable)', "", GATE + ' -k nobody'),
    Mutant(E, "parts count as unknowable", 'unknowable = case.unknowable and ask.role == "whole"', "unknowable = case.unknowable", PIPELINE),
    Mutant(E, "conflicting atoms resolved towards right", "order = {False: 0, None: 1, True: 2}", "order = {False: 2, None: 1, True: 0}", GATE + ' -k atom'),
    Mutant(E, "second hop also after a wrong first", 'values = [item.truth("whole") if item.truth("pair:q1") else None for item in hop]', 'values = [item.truth("whole") for item in hop]', PAIRS + ' -k hop'),
    Mutant(E, "second hop over cases whose first is wrong", 'if item.truth("pair:q1") is not False]', "]", PAIRS + ' -k hop'),
    Mutant(E, "co-presented partner without its seed", "random.Random(seed).shuffle(order)\n    partner", "random.Random(0).shuffle(order)\n    partner", PAIRS + ' -k independent'),
    Mutant(E, "any step right counts as both", "        if value is False:\n            return False\n        if value is None:", "        if value is True:\n            return True\n        if value is None:", GAP),
    Mutant(E, "invalid answers are wrong", '    if row.outcome == "invalid":\n        return None', '    if row.outcome == "invalid":\n        return False', GAP),
    Mutant(E, "upper bound without the open cases", "bound_high=(k + unknown) / total if total else None", "bound_high=k / total if total else None", GAP),
    Mutant(E, "Press gap over all cases", "inside = [(w, item) for (gate, w), item in zip(outcomes, items, strict=True) if gate is True]", "inside = [(w, item) for (gate, w), item in zip(outcomes, items, strict=True)]", GAP),
    Mutant(E, "independence gap without its product", "means[..., 0] - np.prod(means[..., 1:], axis=-1)", "means[..., 0] - np.min(means[..., 1:], axis=-1)", GAP),
    Mutant(E, "quadrants read right for wrong", 'return "".join("1" if s else "0" for s in steps)', 'return "".join("0" if s else "1" for s in steps)', GAP),
    Mutant(E, "conflation with its sign turned", "return s[..., 1] / s[..., 0] - s[..., 3] / s[..., 2]\n\n    single", "return s[..., 3] / s[..., 2] - s[..., 1] / s[..., 0]\n\n    single", GATE),
    Mutant(E, "code gain relative to code", "return (s[..., 0] - s[..., 1]) / s[..., 1]\n\n    right", "return (s[..., 0] - s[..., 1]) / s[..., 0]\n\n    right", PAIRS),
    Mutant(E, "channels compared at any distance of knowledge", "abs(atom.value) <= MATCHED_WITHIN + 1e-9", "abs(atom.value) <= 1", GATE),
    Mutant(E, "k is the last level that helps", "for j, right in enumerate(levels, 1):\n        if right is not False:\n            possible.add(j)", "for j, right in enumerate(levels, 1):\n        if right is None:\n            possible.add(j)", STAD),
    Mutant(E, "scaffolds of invalid wholes are not asked", 'if self.ask_all or whole.outcome != "correct":', 'if self.ask_all or whole.outcome == "incorrect":', STAD),
    Mutant(E, "Holm skipped in profiles", 'zip(rows, statistics.holm([r["p"] for r in rows]), strict=True):', 'zip(rows, [r["p"] for r in rows], strict=True):', PROFILES),
    Mutant(E, "profiles permuted without their seed", "    rng = np.random.default_rng(seed)\n    hits = 1", "    rng = np.random.default_rng(0)\n    hits = 1", PROFILES),
    # grading, bounds and curves
    Mutant(E, "a percentage keeps its number", "if g[\"percent\"]:\n        return replace(number, value=number.value / 100, percent=True)", "if g[\"percent\"]:\n        return replace(number, percent=True)", GRADES),
    Mutant(E, "a denied yes is a yes", 'found.add(_VALUES[word] != bool(m["negated"]))', "found.add(_VALUES[word])", GRADES),
    Mutant(E, "an open gate cannot be a failure", "may_fail = open_whole + sum(w is not True for w in undecided)", "may_fail = open_whole", BOUNDS),
    Mutant(E, "least difference with open answers half bounded", "low = sum(_least(x, 0) - _least(y, 1)", "low = sum(_least(x, 0) - _least(y, 0)", BOUNDS),
    Mutant(E, "bottleneck's upper bound forgets the others", "(count + this) / (n + this + elsewhere)", "(count + this) / (n + this)", BOUNDS),
    Mutant(E, "skill accuracy of failed items counts open ones", 'failed = [(s, v) for s, v in found if s.item.truth("whole") is False]', 'failed = [(s, v) for s, v in found if s.item.truth("whole") is not True]', STAD),
    Mutant(E, "bootstrap interval of 90 %", "tail = (1 - CONFIDENCE) / 2\n    low, high = np.quantile", "tail = 1 - CONFIDENCE\n    low, high = np.quantile", STATISTICS),
    Mutant(E, "equal outcomes of clusters count as cases", 'effective, method = dependence.effective(clusters), "clopper', 'effective, method = float(n), "clopper', STATISTICS),
    Mutant(E, "families without their depth-2 control", "                curve |= _curve(control)\n", "", GATE),
    Mutant(E, "a mean of k where open items may only raise it", "if n == 0 or (k * n < total if end is min else k * n > total):", "if n == 0 or k * n > total:", STAD),
    # asking
    Mutant(E, "late error beside an answer counts as failure", "        if key not in contents.responses:\n            contents.failures[key] = response", "        contents.failures[key] = response", JOURNAL),
    Mutant(E, "the later of two answers counts", "kept = contents.responses.setdefault(key, response)", "kept = contents.responses[key] = response", JOURNAL),
    Mutant(E, "journal not synced when it is closed", "        if self._fd is not None:\n            os.fsync(self._fd)\n", "", JOURNAL),
    Mutant(E, "the temperature is no part of an ask", '"stop", "temperature", "seed", "repeat")', '"stop", "seed", "repeat")', JOURNAL),
    Mutant(E, "the same random number at every step", 'random.Random(f"{row.seed}:{len(row.generated)}")', 'random.Random(f"{row.seed}")', "tests/evaluation/engines/test_local.py -k sample_is"),
    Mutant(E, "temperature multiplied", "logits.double() / row.temperature", "logits.double() * row.temperature", "tests/evaluation/engines/test_local.py -k sample_is"),
    Mutant(E, "identical asks put for every case", "unique.setdefault(key, ask)", "unique[key + case.id] = ask", PIPELINE),
    Mutant(E, "refused asks stand first when a run goes on", "for key in sorted(todo, key=failed.__contains__)", "for key in todo", "tests/evaluation/engines/test_hostile_servers.py -k failed_before"),
    Mutant(E, "an error beside the choices is no error", 'if getattr(reply, "error", None):', 'if getattr(reply, "errors", None):', "tests/evaluation/engines/test_odd_replies.py"),
    Mutant(E, "divergence is where the shorter answer ends", "        if x != y:\n            return i\n    return None if len(a)", "        if x != y:\n            return min(len(a), len(b))\n    return None if len(a)", "tests/evaluation/engines/test_divergence.py"),
    # found from outside: most of these the tests missed when they were first tried
    Mutant(E, "effective number of cases is the number of clusters", "return len(labels) ** 2 / float((np.bincount(joined(labels)) ** 2).sum())", "return float(len(set(joined(labels).tolist())))", STATISTICS + " -k equal_outcomes"),
    Mutant(E, "apart forgets all but the last labels", "taken |= names\n            kept.append(i)", "taken = names\n            kept.append(i)", DEPENDENCE + " -k apart"),
    Mutant(E, "clusters may be worth more than their cases", "effective = min(float(known) * ratio**2, float(n))", "effective = float(known) * ratio**2", STATISTICS + " -k balance"),
    Mutant(E, "differences beyond one", "return Interval(max(interval.low, -1.0), min(interval.high, 1.0), method)", "return Interval(interval.low, interval.high, method)", STATISTICS + " -k beyond"),
    Mutant(E, "d50 interpolates from the first depth", "start = depths[i - 1]\n", "start = depths[0]\n", STATISTICS + " -k d50"),
    Mutant(E, "thinking is no part of an ask", '    if ask.thinking is not None:\n        request.append({"thinking": ask.thinking})\n', "", JOURNAL.partition(" ")[0] + " -k identity"),
    Mutant(E, "a begun answer is no part of an ask", '    if ask.begun:\n        request.append({"begun": ask.begun})\n    return', "    return", JOURNAL.partition(" ")[0] + " -k identity"),
    Mutant(E, "aliases of numbers are ignored", "in_unit([w for w in wanted if w is not None], asked.question)", "in_unit(wanted[:1], asked.question)", KNOWN + " -k accepted"),
    Mutant(E, "the first of several corrections counts", "for correction in reversed(cues.corrections(plain)[-_CORRECTIONS:]):\n        after = _statements", "for correction in cues.corrections(plain)[-_CORRECTIONS:]:\n        after = _statements", KNOWN + " -k corrections"),
    Mutant(E, "all accepted names must be answered later", 'return any(f" {text.normalize(gold)} " in given for gold in golds)\n\n\ndef _deep', 'return all(f" {text.normalize(gold)} " in given for gold in golds)\n\n\ndef _deep', KNOWN + " -k asks_again"),
    Mutant(E, "a denial reaches three words", "for n, word in enumerate(reversed(last[-7:])):", "for n, word in enumerate(reversed(last[-3:])):", KNOWN + " -k denial"),
    Mutant(E, "recovery also of open wholes", "failed = [g for g in gated if g.double is True and g.whole is False]", "failed = [g for g in gated if g.double is True and g.whole is not True]", GATE + " -k recovery"),
    Mutant(E, "steps that a case does not have count", "own = [k for k, item in enumerate(items) if i < item.n_parts]", "own = list(range(len(items)))", "tests/evaluation/protocols/test_missing_rows.py -k step"),
    Mutant(E, "items without a level above k may fail above it", "if s.k is not None and s.k > 0 and any(j > s.k for j in s.outcomes)]", "if s.k is not None and s.k > 0]", STAD + " -k above"),
    Mutant(E, "draws without their seed", "changed.update(temperature=self.how.temperature, seed=self.how.seed)", "changed.update(temperature=self.how.temperature, seed=0)", PRESENTING + " -k draws"),
    Mutant(E, "room to think replaces a larger budget", 'changed["max_tokens"] = max(ask.max_tokens, self.how.thinking_tokens)', 'changed["max_tokens"] = self.how.thinking_tokens', PRESENTING + " -k room"),
    Mutant(E, "inspect: max_tokens is a normal stop", 'finish_reason="length" if stopped == "max_tokens" else "stop"', 'finish_reason="stop"', "tests/evaluation/importers/test_plain_rows.py -k every_kind"),
    Mutant(E, "inspect: accuracy is compared although samples are invalid", 'if any(row.repeat for row in rows) or any(row.outcome == "invalid" for row in rows):', 'if any(row.repeat for row in rows):', "tests/evaluation/importers/test_importers.py -k archive"),
    Mutant(E, "a date in Retry-After is not understood", 'seconds = parsedate_to_datetime(stated).timestamp() - time.time()', 'seconds = parsedate_to_datetime(stated).timestamp()', "tests/evaluation/engines/test_hostile_servers.py -k pause_is"),
    Mutant(E, "orderings guessed as if one of n", '        choices *= n\n', '        choices = n\n', "tests/evaluation/builders/test_synthetic_builder.py -k chances"),
    Mutant(E, "nearest options may be equally far", 'abs(far - abs(o.years - reference.years)) >= gap', 'abs(far - abs(o.years - reference.years)) >= 0', "tests/experiments/test_building.py -k harder"),
    Mutant(E, "pooled answers resampled one by one", 'repeat=n, cluster=r.cluster or r.case)', 'repeat=n, cluster=r.cluster or f"{r.case}-{n}")', PROFILES + " -k pooled"),
    Mutant(E, "two answers are well-formed", 'text.count("<answer>") == 1 and', 'text.count("<answer>") >= 1 and', "tests/evaluation/analyses/test_gate_analyses.py -k strict"),
    Mutant(E, "bottleneck share over items without the skill", 'holding = [supplied for all_, supplied in needed if skill in all_]', 'holding = [supplied for all_, supplied in needed]', PROFILES + " -k skill"),
    Mutant(E, "people of a round are all asked the same role", 'own[(t + i) % len(own)]', 'own[t % len(own)]', "tests/evaluation/analyses/test_people.py -k sees_two"),
    Mutant(E, "MQuAKE facts by their subject", '[" ".join(map(str, t[:2])) for t in triples]', '[str(t[0]) for t in triples]', "tests/evaluation/benchmarks/test_multi_hop_readers.py -k remastered"),
    Mutant(E, "one item tells two profiles apart", "(np.bincount(v[v >= 0], minlength=len(names)) for v in (x, y))", "(np.bincount(v[v >= 0]) for v in (x, y))", PROFILES + " -k equally_good"),
    Mutant(E, "a number that stands for a text is a name", "return _number if _PURE_NUMBER.fullmatch(gold) and mathematics.is_plain_number(gold) else _name", "return _name", GRADES + " -k 42"),
    Mutant(E, "a clause about a name where only one is a name", "named = head is not None and head.capital and sentence[i].capital", "named = head is not None and head.capital or sentence[i].capital", GRADES + " -k 'Oslo or German'"),
    Mutant(E, "an expression without a result is no answer", 'return QuantityReading(None, "no-answer" if negated else "expression")', 'return QuantityReading(None, "no-answer")', GRADES + " -k without"),
    Mutant(E, "accuracy by kind over paraphrases too", 'if row.kind and role.startswith("part:") and role.count(":") == 1:', 'if row.kind and role.startswith("part:"):', GATE + " -k kind"),
    Mutant(E, "abstentions are shown to the judge", "if graded[i][2].outcome == outcome and graded[i][2].answer}", "if graded[i][2].outcome != outcome and graded[i][2].answer}", "tests/evaluation/test_pipeline.py -k judge_sees"),
    Mutant(E, "skills of items that name all of them only", "        if any(s.skills):\n            combinations", "        if all(s.skills):\n            combinations", STAD + " -k success_by_level"),
    # hooks
    Mutant(H, "masses one row late", "for first in range(window.first, window.last, chunk):\n        rows = torch.arange(first, min(first + chunk, window.last), device=q.device)", "for first in range(window.first, window.last, chunk):\n        rows = torch.arange(first, min(first + chunk, window.last), device=q.device).sub(1).clamp_min(0)", MASSES + ' -k arbitrary'),
    Mutant(H, "masses without attention sinks", "total = total + (sinks.to(scores.dtype).view(-1, 1, 1) - top).exp()", "pass", MASSES + ' -k arbitrary'),
    Mutant(H, "masses without the soft cap", 'scores.div_(options["softcap"]).tanh_().mul_(options["softcap"])', "pass", MASSES + ' -k arbitrary'),
    Mutant(H, "masses of the key after the query", "hidden = keys > rows[:, None]\n", "hidden = keys > rows[:, None] + 1\n", MASSES + ' -k "arbitrary and llama"'),
    Mutant(H, "rows see one key too many of a sliding window", "visible = visible & (j > at + offset - window)", "visible = visible & (j >= at + offset - window)", REFERENCES + ' -k patched'),
    Mutant(H, "rows without the soft cap", "scores = torch.tanh(scores / softcap) * softcap", "pass", REFERENCES + ' -k patched'),
    Mutant(H, "rows see their own position twice", "visible = j < at\n", "visible = j <= at\n", REFERENCES + ' -k patched'),
    Mutant(H, "a row may differ from the full pass by half", "limit = 1e-3 if prefix.final.dtype in (torch.float32, torch.float64) else 0.1", "limit = 0.5", "tests/hooks/test_placement.py tests/hooks/test_experts.py -k 'recomputed or experts'"),
    Mutant(H, "head without the soft cap", "x.div_(self.softcap).tanh_().mul_(self.softcap)", "pass", REFERENCES + ' -k min_k'),
    Mutant(H, "variance of merged tiles without the difference of means", "+ delta.square() * mass_a * mass_b / safe", "", MASSES + ' -k "tiled and llama"'),
    Mutant(H, "padding on the left is read as text", "if int(leading[row]) > (padding in ends):", "if int(leading[row]) > 99:", SURROUNDINGS + ' -k padding'),
    Mutant(H, "autocast is let through", 'if device != "meta" and torch.is_autocast_enabled(device):', "if False:", SURROUNDINGS + ' -k autocast'),
    Mutant(H, "hooks of others are not recorded", "acts=with_heads(run.acts), hooks=hooks)", "acts=with_heads(run.acts))", SURROUNDINGS + ' -k hooks'),
    Mutant(H, "weight of the expert left out", "delta = ((new - z) @ down(module, e).T) * sent.weight[tokens, slots, None]", "delta = (new - z) @ down(module, e).T", "tests/hooks/test_experts.py"),
    Mutant(H, "widened weights stay widened", "            fields[name] = weight\n            self.changed.pop()", "            self.changed.pop()", "tests/hooks/test_precision.py"),
    Mutant(H, "the shortest sequence of a batch comes first", "sorted(together, key=lambda i: (-len(requests[i].ids), i))", "sorted(together, key=lambda i: (len(requests[i].ids), i))", MASSES + ' -k longest'),
    Mutant(H, "positions read where the rows begin keep their old values", "later = [j for j, p in enumerate(read) if p >= start]", "later = [j for j, p in enumerate(read) if p > start]", INTERCHANGE),
    Mutant(H, "targets of later positions taken from the first", "torch.tensor([targets[j] for j in read])", "torch.tensor(list(targets[: len(read)]))", INTERCHANGE),
    Mutant(H, "rows join after the block of their last edit", "return min(entry(e) for e in edits)", "return max(entry(e) for e in edits)", INTERCHANGE),
    Mutant(H, "one state may be replaced under two names", 'return (site.layer + 1, "resid_pre") if site.kind == "resid_post" else (site.layer, site.kind)', "return (site.layer, site.kind)", INTERCHANGE),
    Mutant(H, "noise of any length", "return own + drawn * (size / drawn.norm(dim=-1, keepdim=True))", "return own + drawn * size", INTERCHANGE),
    Mutant(H, "states of shorter prompts taken one position early", "cols = torch.tensor([p for i in some for p in positions[i]])", "cols = torch.tensor([max(0, p - (len(prompts[i]) < len(prompts[some[0]]))) for i in some for p in positions[i]])", INTERCHANGE),
    Mutant(H, "the first text's mask for the whole batch", "return mask[min(b, mask.shape[0] - 1)]", "return mask[0]", LIVE + ' -k "teacher_forced_ones and llama"'),
    Mutant(H, "queries meet the keys of other heads", '"kv (group row) key -> (kv group) row key"', '"kv (group row) key -> (group kv) row key"', MASSES + ' -k "arbitrary and llama"'),
    Mutant(H, "values come from other heads' keys", '"b kv k d -> b (kv group) k d"', '"b kv k d -> b (group kv) k d"', INTERCHANGE + ' -k "knocked and llama"'),
    Mutant(H, "later tokens stay at the position of the first", "positions = (prefix.positions + offset)[:, None]", "positions = prefix.positions[:, None]", ROWS + ' -k "continue and llama"'),
    Mutant(H, "rows see one token too many of their own past", "back = past if window is None else min(past, window - 1)", "back = past if window is None else min(past, window)", ROWS + ' -k "continue and mistral"'),
    Mutant(H, "prompts joined to others take their keys", "(*self.queries, *(Query(n + i, q.position) for", "(*self.queries, *(Query(i, q.position) for", PATCHING + ' -k "literal_patch and llama"'),
    Mutant(H, "what was expected to change nothing is not looked at", "same[of] &= (", "same[of] |= (", ROWS + " -k nothing"),
    Mutant(H, "edited rows see one key too many of a sliding window", "return (keys <= at) & (keys > at - window if", "return (keys <= at) & (keys >= at - window if", INTERCHANGE + ' -k "forward_pass and mistral"'),
    Mutant(H, "a key is hidden from all rows", "seen[row, 0, query, at] = False", "seen[:, 0, query, at] = False", INTERCHANGE + ' -k "knocked and llama"'),
    Mutant(H, "states go back from one layer below", "own[late + 1, i]) for i, p in enumerate(positions)", "own[late, i]) for i, p in enumerate(positions)", INTERCHANGE + " -k earlier"),
    Mutant(H, "noise without its seed", "generator=torch.Generator().manual_seed(seed)).to(own)", "generator=torch.Generator().manual_seed(0)).to(own)", INTERCHANGE + " -k earlier"),
    Mutant(H, "every tile has the bias of the first", "x += self.bias[start:stop].to(x.dtype)", "x += self.bias[: x.shape[1]].to(x.dtype)", MASSES + ' -k "tiled and phi"'),
    Mutant(H, "new tokens stand at the beginning", "positions = torch.arange(start, start + width, device=ids.device).expand(rows, width)", "positions = torch.arange(width, device=ids.device).expand(rows, width)", INTERCHANGE + " -k generation"),
    Mutant(H, "ended sequences may lead", 'np.maximum.at(last, same, np.where(running, rank, 0))', 'np.maximum.at(last, same, rank)', 'tests/hooks/test_rows.py -k has_ended'),
    Mutant(H, "likeliest tokens as logits", '"top_log_probs": best.values - total', '"top_log_probs": best.values', 'tests/hooks/test_interchange.py -k "forward_pass and llama"'),
    Mutant(H, "infinite states are let through", 'if x is not None and not torch.isfinite(x).all():', 'if x is not None and torch.isnan(x).any():', 'tests/hooks/test_masses_and_capture.py -k not_finite'),
    Mutant(H, "texts of exactly the limit count as long", 'sum(n > limit for limit in rotary)', 'sum(n >= limit for limit in rotary)', 'tests/hooks/test_length_limits.py -k exactly'),
    Mutant(H, "causal mask of a continued text starts at its first key", '.tril(k - q)[None, None]', '.tril()[None, None]', 'tests/hooks/test_reading_and_editing.py -k last_queries'),
    Mutant(H, "NaN rows count as unchanged", 'if not error <= limit:\n        half', 'if error > limit:\n        half', 'tests/hooks/test_rows.py -k without_numbers'),
    Mutant(H, "NaN of any row is not looked at", 'if not torch.isfinite(x).all():\n        bad', 'if not torch.isfinite(x[:1]).all():\n        bad', 'tests/hooks/test_interchange.py -k overflow'),
    Mutant(H, "suffix rows as if all memory were free", 'most if free is None else min(free // 4, most)', 'most', 'tests/hooks/test_length_limits.py -k quarter'),
    Mutant(H, "experts that are no sum pass", '<= limit * float(own.abs().max().clamp_min(1e-6))', '<= 1e3 * limit * float(own.abs().max().clamp_min(1e-6))', "tests/hooks/test_experts.py -k not_the_sum"),
    Mutant(H, "the head may differ by a tenth", 'tolerance = 1e-4 if hidden.dtype in (torch.float32, torch.float64) else 3e-2', 'tolerance = 1e-1', MASSES + " -k transforms"),
    Mutant(H, "earlier tokens are masked out", 'mask = torch.cat([mask.new_ones(mask.shape[0], offset), mask], 1)', 'mask = torch.cat([mask.new_zeros(mask.shape[0], offset), mask], 1)', READING + " -k cache_continues"),
    Mutant(H, "masks that no window explains are accepted", '    if not torch.equal(seen, expected):\n', '    if not torch.equal(seen[-1:], expected[-1:]):\n', ROWS + " -k sides_of_a_length"),
    Mutant(H, "texts begin twice", 'begin is not None and list(row[:2]) == [begin, begin]', 'begin is not None and list(row[:2]) == [begin]', SURROUNDINGS + " -k in_writing"),
    # probes
    Mutant(P, "KL reversed", '"kl": divergence(log_q, log_p),\n        "kl_from_donor"', '"kl": divergence(log_p, log_q),\n        "kl_from_donor"', PATCHING + ' -k divergence'),
    Mutant(P, "KL of positions reversed", '"kl": divergence(log_q, log_p),\n        "logit', '"kl": divergence(log_p, log_q),\n        "logit', PATCHING + ' -k position_sweep'),
    Mutant(P, "equal tokens after the first difference count", "agree = (tokens == base).long().cumprod(-1)", "agree = (tokens == base).long()", PATCHING + ' -k divergence'),
    Mutant(P, "length ignored in matching", "return depth + (a.operation != b.operation) + length + OTHER_TOKEN", "return depth + (a.operation != b.operation) + OTHER_TOKEN", MATCHING + ' -k "distance or length"'),
    Mutant(P, "pairs beyond the caliper are kept", "for i, j in zip(rows, columns, strict=True) if allowed[i, j]]", "for i, j in zip(rows, columns, strict=True)]", MATCHING + ' -k "caliper or dropped or assignment"'),
    Mutant(P, "question span one short", "a, b = (1, len(ids)) if span is None else (max(1, span[0]), span[1])", "a, b = (1, len(ids)) if span is None else (max(1, span[0]), max(span[0] + 2, span[1] - 1))", 'tests/probes/test_readings.py -k "min_k or question or span"'),
    Mutant(P, "reference rule with 10 nodes", '(20 if rule == "reference" else NODES)', '(10 if rule == "reference" else NODES)', NEURONS + ' -k published_20'),
    Mutant(P, "floor of completeness a hundred times higher", "clamp_max(1e-6)\n    return tolerance", "clamp_max(1e-4)\n    return tolerance", NEURONS + ' -k "complete or silencing or near_zero or many_nodes"'),
    Mutant(P, "Min-K rounds up", "count = int(len(values) * k)", "count = -int(-(len(values) * k) // 1)", REFERENCES + ' -k min_k'),
    Mutant(P, "z by the variance", "sigma = np.maximum(np.sqrt(variance), sigma_floor)", "sigma = np.maximum(variance, sigma_floor)", REFERENCES + ' -k min_k'),
    Mutant(P, "NAICA above and below zero", "kept = [(n, x) for n, x in naica.items() if x > 0]", "kept = list(naica.items())", NEURONS + ' -k "key_neurons or common"'),
    Mutant(P, "overlap by the larger set", "both / min(len(x), len(y)), both / len(x | y)", "both / max(len(x), len(y)), both / len(x | y)", NEURONS + ' -k overlap'),
    Mutant(P, "a flip where the donor's answer was given before", 'flip=_known(others, "correct") if before[1].outcome != "correct" else _column(nan)', 'flip=_known(others, "correct")', "tests/probes/test_patching_answers.py"),
    Mutant(P, "a position's recovered share without its start", "recovered = (difference - spread[1]) / scale", "recovered = difference / scale", PATCHING + ' -k position'),
    Mutant(P, "steps of cosines one late", 'return Request([*prompt, *kept[:-1]], states=(n - 1, n - 1 + len(kept)))', 'return Request([*prompt, *kept[:-1]], states=(n, n - 1 + len(kept)))', REFERENCES + ' -k cosines'),
    Mutant(P, "effect without Hedges' factor", "return (1 - 3 / (4 * df - 1)) * difference / sd", "return difference / sd", CONTRASTS + ' -k hedges'),
    Mutant(P, "AUROC where ties count nothing", "wins = (x[:, None] > y[None]) + 0.5 * (x[:, None] == y[None])", "wins = (x[:, None] > y[None]) + 0.0 * (x[:, None] == y[None])", CONTRASTS + ' -k auroc'),
    Mutant(P, "sign flips without their seed", "signs = np.random.default_rng(seed).choice([-1.0, 1.0]", "signs = np.random.default_rng(0).choice([-1.0, 1.0]", CONTRASTS + ' -k seed'),
    Mutant(P, "the first number after a cue is not the answer", "return None if not spans else min(spans) if cued else max(spans)", "return None if not spans else max(spans)", "tests/probes/test_answer_spans.py"),
    Mutant(P, "beyond one baseline is beyond all", "    if not missed:\n        return {**row", "    if len(missed) < max(1, len(names)):\n        return {**row", VERDICTS),
    Mutant(P, "cases of which any baseline is known count", "keep = np.isfinite([c.baselines[n] for n in names]).all(0)", "keep = np.isfinite([c.baselines[n] for n in names]).any(0)", VERDICTS),
    Mutant(P, "without the lowest dose keeps it", "keep = c.level > c.level.min()", "keep = c.level >= c.level.min()", VERDICTS),
    Mutant(P, "no effect is bounded on one side only", "if max(-low, high) < bound:", "if high < bound:", VERDICTS),
    Mutant(P, "direction from successes to failures", "return means[0] - means[1]\n", "return means[1] - means[0]\n", STEERING),
    Mutant(P, "noise donor at any distance", 'states["noise"] = own + noise * distance / noise.norm(dim=-1, keepdim=True)', 'states["noise"] = own + noise', STEERING),
    Mutant(P, "a reader is trained on the text's own answer", "kept = torch.tensor([i for i, a in enumerate(labels) if a != right], dtype=torch.long)", "kept = torch.tensor([i for i, a in enumerate(labels) if a], dtype=torch.long)", READOUT),
    Mutant(P, "equal scores count as above", "(mine == others).float() / 2", "(mine == others).float()", READOUT),
    Mutant(P, "pairs that share a fact enter the cosines", "allowed = (group[:, None] != group).astype(float)", "allowed = 1.0 - np.eye(len(group))", CONTRASTS + ' -k "separation or cosine or share or cluster"'),
    Mutant(P, "the map's p as if there were one layer", "(scaled.max(0) >= abs(x)).sum()", "(scaled[layer] >= abs(x)).sum()", CONTRASTS),
    Mutant(P, "paired maps flip cases instead of clusters", 'return codes(clusters[0], n, "cases")', "return None", CONTRASTS + " -k map_test"),
    Mutant(P, "labels permuted over cases instead of clusters", "labels = rng.permuted(np.tile(of_cluster, (permutations, 1)), axis=1)[:, group]", "labels = rng.permuted(np.tile(donor, (permutations, 1)), axis=1)", CONTRASTS + " -k labels"),
    Mutant(P, "DeLong's variances divided by the other side", "wins.mean(1).var(ddof=1) / x.size + wins.mean(0).var(ddof=1) / y.size", "wins.mean(1).var(ddof=1) / y.size + wins.mean(0).var(ddof=1) / x.size", CONTRASTS + " -k auroc"),
    Mutant(P, "the AUROC's interval over cases instead of clusters", "low, high = _cluster_auroc(wins, group, level, resamples, seed)", "low, high = _cluster_auroc(wins, np.arange(x.size + y.size), level, resamples, seed)", CONTRASTS + " -k widen"),
    Mutant(P, "clusters of an AUROC resampled without their seed", "rng = np.random.default_rng(seed)\n    k, n = int(group.max()) + 1", "rng = np.random.default_rng(0)\n    k, n = int(group.max()) + 1", CONTRASTS + " -k seed"),
    Mutant(P, "doses resampled without their seed", "rng = np.random.default_rng(seed)\n    groups = [codes", "rng = np.random.default_rng(0)\n    groups = [codes", CONTRASTS + " -k dose_series"),
    Mutant(P, "effects planted without their seed", "rng = np.random.default_rng(seed)\n    sd = float(x.std(ddof=1))", "rng = np.random.default_rng(0)\n    sd = float(x.std(ddof=1))", CONTRASTS + " -k seed"),
    Mutant(P, "the higher model is expected higher whatever was declared", 'sides if expected == "increasing" else sides[::-1]', "sides", CONTRASTS + " -k dose_series"),
    Mutant(P, "verdicts forget which cases were drawn", "float(np.sqrt(across + within)), freedom, null)", "float(np.sqrt(across)), freedom, null)", VERDICTS + " -k jackknife"),
    Mutant(P, "the jackknife of verdicts as a variance of the mean", "within = (g - 1) / g * float(", "within = 1 / (g * (g - 1)) * float(", VERDICTS + " -k jackknife"),
    Mutant(P, "matched pairs as if they shared nothing", "row = paired(sides, quantity=quantity, clusters=cluster, seed=seed).table[0]", "row = paired(sides, quantity=quantity, seed=seed).table[0]", MATCHING + " -k cluster"),
    Mutant(P, "what was read is no cue", "cue_tokens=e.cue_tokens + n, begun=e.begun + n, slot=AT_ONCE", "cue_tokens=e.cue_tokens, begun=e.begun + n, slot=AT_ONCE", SLOTS),
    Mutant(P, "new keys counted one late", "new_keys = torch.arange(steps) + self.prompt_tokens", "new_keys = torch.arange(1, steps + 1) + self.prompt_tokens", READINGS + ' -k "stepwise and llama"'),
    Mutant(P, "live masses of short prompts fall on their padding", "tuple((a + pad if a else 0, b + pad) for a, b in lay.ranges)", "lay.ranges", LIVE + " -k batch"),
    Mutant(P, "centred over dimensions instead of prompts", "x = x - x.mean(1, keepdim=True)", "x = x - x.mean(2, keepdim=True)", READINGS + " -k centered"),
    Mutant(P, "length matching without its seed", "rng = np.random.default_rng(seed)\n    subsets", "rng = np.random.default_rng(0)\n    subsets", READINGS + " -k length_matching"),
    Mutant(P, "ten times as many tokens are numerically delicate", "self.variance < SMALL_SIGMA**2", "self.variance < SMALL_SIGMA", READINGS + " -k certain"),
    Mutant(P, "a control's state may be the recipient's own", "torch.randint(1, len(plan.recipients)", "torch.randint(0, len(plan.recipients)", BEYOND + " -k controls"),
    Mutant(P, "noise at a prompt's end at any distance", "size = (first - own).norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True)", "size = (first - own).norm(dim=-1, keepdim=True)", BEYOND + " -k controls"),
    Mutant(P, "controls of patching without their seed", 'generator = torch.Generator().manual_seed(seed)\n    if "identity" in controls:', 'generator = torch.Generator().manual_seed(0)\n    if "identity" in controls:', BEYOND + " -k controls"),
    Mutant(P, "control minus donor", 'for s in ("donor", control)})', 'for s in (control, "donor")})', BEYOND),
    Mutant(P, "Holm over one layer at a time", 'rows += adjust(found, f"{quantity}: donor - {control}, all layers")', 'rows += [r for one in found for r in adjust([one], f"{quantity}: donor - {control}, all layers")]', BEYOND),
    Mutant(P, "noising with the answers of denoising", "return [(r, d, (a[1], a[0])) for d, r, a", "return [(r, d, a) for d, r, a", SWEEPS + " -k noising"),
    Mutant(P, "a screen is checked in the same cells for every seed", "order = np.random.default_rng(seed).permutation(total)", "order = np.random.default_rng(0).permutation(total)", SWEEPS + " -k agreement"),
    Mutant(P, "chance of an overlap by the smaller set", "sizes = [max(len(x), len(y)) for x, y in zip", "sizes = [min(len(x), len(y)) for x, y in zip", NEURONS + " -k overlap_knows"),
    Mutant(P, "random neurons may be the chosen ones", "free = [i for i in range(*pool) if (layer, i) not in taken]", "free = list(range(*pool))", NEURONS + " -k random"),
    Mutant(P, "random neurons without their seed", "rng = np.random.default_rng(seed)\n    sets = [[list(chosen)", "rng = np.random.default_rng(0)\n    sets = [[list(chosen)", NEURONS + " -k random"),
    Mutant(P, "a text is centred by itself, too", "(other * scores).sum(0, keepdim=True) - other * scores, other.sum(0, keepdim=True) - other", "(other * scores).sum(0, keepdim=True).expand_as(scores), other.sum(0, keepdim=True).expand_as(other)", READOUT + " -k centred"),
    Mutant(P, "long names by their sum", "torch.stack([x.mean(1) for x in forced(", "torch.stack([x.sum(1) for x in forced(", READOUT + " -k several_tokens"),
    Mutant(P, "one distant pair for two near ones", 'np.where(allowed, apart, (1 + caliper) * (1 + min(apart.shape)))', 'np.where(allowed, apart, caliper + 1)', 'tests/probes/test_matching.py -k distant'),
    Mutant(P, "token at the slot instead of before it", 'return e.response_ids[n - 1] if n else', 'return e.response_ids[n] if n else', 'tests/probes/test_matching.py -k token_before'),
    Mutant(P, "question_only ignored", 'e.question_span if question_only else None', 'e.question_span', 'tests/probes/test_over_examples.py -k own_tokens'),
    Mutant(P, "neurons at the threshold are chosen", '(scores > t * scores.max())', '(scores >= t * scores.max())', 'tests/probes/test_neurons.py -k threshold'),
    Mutant(P, "shown steps rounded up", 'kept[math.floor(shown * case.steps + 1e-9)]', 'kept[math.ceil(shown * case.steps - 1e-9)]', 'tests/probes/test_faithfulness.py -k at_most'),
    Mutant(P, "results count among all altered values", '(step == "all" and o.altered.written.what != "result")', '(step == "all")', 'tests/probes/test_faithfulness.py -k altered_results'),
    Mutant(P, "before the end with the end", '"kept_before_end", {}, lambda c: _mean(c.kept()[:-1])', '"kept_before_end", {}, lambda c: _mean(c.kept())', 'tests/probes/test_faithfulness.py -k at_most'),
    Mutant(P, "a value whose consequence is the same answer", 'if one is not None and (one.follows is None or not same(one.follows, found.answer)):', 'if one is not None:', 'tests/probes/test_faithfulness.py -k same_answer'),
    Mutant(P, "dropped cases of the first role only", 'dropped = len(set(table[first]) | set(table[second])) - len(shared)', 'dropped = len(table[first]) - len(shared)', 'tests/probes/test_contrasts.py -k both_roles'),
    Mutant(P, "matched sizes at the longest", 'n = None if size is None else min(size(i)', 'n = None if size is None else max(size(i)', 'tests/probes/test_tables.py -k smaller'),
    Mutant(P, "threshold of a map at the wrong end", 'float(np.quantile(largest, level,', 'float(np.quantile(largest, 1 - level,', CONTRASTS + " -k planted_cell"),
    Mutant(P, "the test of a verdict is not asked", 'if (not low > self.null and not high < self.null) or self.p > 0.05:', 'if not low > self.null and not high < self.null:', VERDICTS + " -k sign_test"),
    Mutant(P, "held over all layers", 'return slice((layers + 1) // 2, None)', 'return slice(0, None)', READOUT + " -k upper_half"),
    Mutant(P, "abstaining before is looked up in the donor's grade", 'abstain=_known(own, "abstained") if before[0].outcome', 'abstain=_known(own, "abstained") if before[1].outcome', "tests/probes/test_patching_answers.py -k flip_abstain"),
    Mutant(P, "the screen's top by sign", 'set(np.argsort(-np.abs(v), kind="stable")[:size].tolist())', 'set(np.argsort(-v, kind="stable")[:size].tolist())', SWEEPS + " -k tops"),
    Mutant(P, "the first queries are sampled", 'return [i * n // size for i in range(size)]', 'return list(range(size))', NEURONS + " -k sampled"),
    Mutant(P, "the curve over ratios at one ratio", '[lowest(tokens[i].z, r, True) for i in mine]', '[lowest(tokens[i].z, k, True) for i in mine]', "tests/probes/test_over_examples.py -k own_tokens"),
    Mutant(P, "the first later part counts", '    for role in reversed(later):\n', '    for role in later:\n', "tests/probes/test_faithfulness.py -k last_part"),
    # experiments
    Mutant(X, "--limit dropped for case files", "kept, format = tuple(limit_cases(found, limit)), recommended_format(found)", "kept, format = tuple(found), recommended_format(found)", EFFECTS + ' -k limit'),
    Mutant(X, "--limit over the whole file", "key = (case.family, case.depth)\n        seen[key] += 1", "key = (None, None)\n        seen[key] += 1", EFFECTS + ' -k limit'),
    Mutant(X, "co-presented partner without the run's seed", "return co_present(cases, config.seed)", "return co_present(cases)", EFFECTS + ' -k seed'),
    Mutant(X, "the protocol counts without the run's seed", 'settled |= {"seed": config.seed or None}', "", EFFECTS + ' -k seed'),
    Mutant(X, "--answer-tokens dropped", '"max_tokens": asking.answer_tokens, "compat"', '"compat"', EFFECTS + ' -k answer_tokens'),
    Mutant(X, "--thinking-tokens dropped", "        thinking_tokens=asking.thinking_tokens,\n", "", EFFECTS + ' -k thinking'),
    Mutant(X, "shared asks counted twice in the plan", "found.update({(ask.prompt, ask.repeat): ask for ask in new if", "found.update({(case.id + ask.prompt, ask.repeat): ask for ask in new if", 'tests/experiments/test_cost.py -k share'),
    Mutant(X, "Holm skipped in compare", 'zip(table, statistics.holm([r["p"] for r in table]), strict=True):', 'zip(table, [r["p"] for r in table], strict=True):', 'tests/experiments/test_runs_together.py -k differences'),
    Mutant(X, "answer and prompt loss weights swapped", "torch.where(answered[:, 1:], 1.0, prompt_weight)", "torch.where(answered[:, 1:], prompt_weight, 1.0)", TRAINING + ' -k weigh'),
    Mutant(X, "organisms trained without their seed", "torch.manual_seed(seed)\n    vocabulary = tokenizer.get_vocab()\n    return Llama", "torch.manual_seed(0)\n    vocabulary = tokenizer.get_vocab()\n    return Llama", TRAINING + ' -k first_weights'),
    Mutant(X, "learning rate never falls", "return stage.learning_rate * min(1.0, (step + 1) / stage.warmup) * (1 - fall * (1 - stage.final))", "return stage.learning_rate * min(1.0, (step + 1) / stage.warmup)", TRAINING + ' -k learning_rate'),
    Mutant(X, "the question is learned, too", "completion_only_loss=True", "completion_only_loss=False", "tests/experiments/interventions/test_trainers.py"),
    Mutant(X, "interventions trained without their seed", "seed=how.seed, data_seed=how.seed", "seed=0, data_seed=0", "tests/experiments/interventions/test_trainers.py"),
    Mutant(X, "truncation ignored in the reward", 'finish = "length" if truncated else "stop"', 'finish = "stop"', REWARD),
    Mutant(X, "truncation one token late in the reward", "truncated=len(i) >= self.max_tokens", "truncated=len(i) > self.max_tokens", REWARD),
    Mutant(X, "the echo costs nothing", "MATCH, TAG, ECHO = 1.0, 0.1, -0.2", "MATCH, TAG, ECHO = 1.0, 0.1, 0.0", REWARD),
    Mutant(X, "training draw without its seed", 'rng = random.Random(f"{seed}/training")', 'rng = random.Random("training")', RECIPES + ' -k "draw or seeds"'),
    Mutant(X, "funnel drawn from the wrong column", 'ax.barh(i, row["count"], alpha=0.9', 'ax.barh(i, row["n"], alpha=0.9', CONTENTS + " -k funnel"),
    Mutant(X, "quadrants drawn from the wrong column", 'row["value"], left=left, height=0.62, **style.bar(row["n"], _QUAD', 'row["count"], left=left, height=0.62, **style.bar(row["n"], _QUAD', CONTENTS + " -k quadrants"),
    Mutant(X, "scatter without the root", "root = math.sqrt((first.value or 0) * (second.value or 0))", "root = (first.value or 0) * (second.value or 0)", CONTENTS + " -k scatter"),
    Mutant(X, "interval of the scatter without the root", "return np.sqrt(sums[..., 1] * sums[..., 2]) / sums[..., 0]", "return sums[..., 1] * sums[..., 2] / sums[..., 0]", CONTENTS + " -k scatter"),
    Mutant(X, "steps revealed counted at the last level", "k = right[0] if right else -1", "k = right[-1] if right else -1", FIGURES + ' -k min_k'),
    Mutant(X, "a dose is known where any part is right", "return [case for case, right in parts.items() if all(right)]", "return [case for case, right in parts.items() if any(right)]", 'tests/experiments/test_demo.py tests/experiments/test_validity_of_own_probes.py -k "parts or both_know"'),
    Mutant(X, "checkpoints count a sub-question for every case", "parts[row.atom or row.ask] = right", "parts[row.case, row.role] = right", 'tests/experiments/interventions/test_study_tables.py -k checkpoint'),
    Mutant(X, "files are not synced before they get their name", "            f.flush()\n            os.fsync(f.fileno())\n", "", 'tests/experiments/test_run_folder.py -k synced'),
    Mutant(X, "names of files are not synced", "    made.replace(path)\n    sync_folder(path.parent)\n", "    made.replace(path)\n", 'tests/experiments/test_run_folder.py -k synced'),
    Mutant(X, "audits drawn without their seed", "for rows in _shares(strata, n, random.Random(seed))", "for rows in _shares(strata, n, random.Random(0))", 'tests/experiments/test_auditing.py'),
    Mutant(X, "the relation mends also where anything does", "if mostly(relation) and relation.share - neutral.share >= CONTROL:", "if mostly(relation):", CAUSE + " -k most_variants"),
    Mutant(X, "a demonstration without its noise control", "return mostly(test.own) and test.foreign.share >= FOREIGN and test.noise.share <= CONTROL", "return mostly(test.own) and test.foreign.share >= FOREIGN", OPENED + " -k intervention"),
    Mutant(X, "a left-out block without the other blocks", "if shows(skip) and outdoes_noise(skip, noise) and skip.own.share - skip.noise.share > EXCESS:", "if shows(skip) and outdoes_noise(skip, noise):", OPENED + " -k intervention"),
    Mutant(X, "few opened cases name a cause", "    if not found.enough:\n        return None\n", "", OPENED + " -k few_opened"),
    Mutant(X, "forced answers that cannot be judged are left out", "found.count(None))\n", "0)\n", CAUSE + " -k cannot_be_judged"),
    Mutant(X, "half-known wordings of all parts together", "worst = max(found.unavailable.values(), key=lambda t: (t.share, t.n), default=Tally())", "worst = Tally(sum(t.k for t in found.unavailable.values()), sum(t.n for t in found.unavailable.values()))", CAUSE + " -k most_variants"),
    Mutant(X, "a case chooses its own layer", "others = [one for other, some in groups.items() if other != id for one in some]", "others = [one for other, some in groups.items() for one in some]", OPENED + " -k cases_choose"),
    Mutant(X, "edits that tell nothing apart speak for a shortcut", "if place >= len(said) or said[place] is None or _same(said[place], golds[place]):", "if place >= len(said) or said[place] is None:", CAUSE + " -k tells_nothing"),
    Mutant(X, "false causes as a share of all cases", '"false_causes": _share(false, len(none))', '"false_causes": _share(false, len(judged))', OPENED + " -k confusion"),
    Mutant(X, "a part that the question names counts as the bridge", "_names(answer, name) and not holds(case.question, name) for name in earlier", "_names(answer, name) for name in earlier", CAUSE + " -k question_names"),
    Mutant(X, "causes drawn from the wrong column", '"cause": s.cause, "value": s.share,', '"cause": s.cause, "value": s.high,', CAUSE + " -k figure_of_causes"),
    Mutant(X, "channels drawn B - A", "found = compare(a.graded, b.graded, {**b.cases, **a.cases}, a.seed)", "found = compare(b.graded, a.graded, {**b.cases, **a.cases}, a.seed)", DRAWN + " -k three_channels"),
    Mutant(X, "outcomes as shares of all answers", '"value": counts[role, o] / n, "drawn"', '"value": counts[role, o] / len(run.graded), "drawn"', CONTENTS + " -k outcomes"),
    Mutant(X, "answers that abstain are no false minus", 'if k[1] in ("incorrect", "abstained")}, labels, True)', 'if k[1] == "incorrect"}, labels, True)', AUDIT + " -k abstention"),
    Mutant(X, "audit that forgets the sizes of its strata", "right[key[1]] += size * sum(said) / len(said)", "right[key[1]] += sum(said)", AUDIT + " -k shares_of_the_run"),
    Mutant(X, "verify looks at values and not at counts", "                if was[cell].get(name) != value:", '                if name == "value" and was[cell].get(name) != value:', VERIFY + " -k does_not_follow"),
    Mutant(X, "verify takes any row of an answer", "            if stored != given:", '            if name == "outcome" and stored != given:', VERIFY + " -k does_not_follow"),
    Mutant(X, "--compat of score dropped", "how = config.asking if compat is None else config.asking.replace(compat=compat)", "how = config.asking", VERIFY + " -k paper_does"),
    Mutant(X, "half of a list is no list", 'if 2 * found >= len(gold) else None', 'if 2 * found > len(gold) else None', 'tests/experiments/diagnosis/test_answers.py -k list_shows'),
    Mutant(X, "plain wordings count among the others", 'if role.startswith("part:") and ":paraphrase:" in role:', 'if role.startswith("part:"):', 'tests/experiments/diagnosis/test_rule.py -k plain'),
    Mutant(X, "a spoilt part without its control", 'return found.own and kept and found.telling', 'return found.own and found.telling', 'tests/experiments/diagnosis/test_rule.py -k in_context'),
    Mutant(X, "successes of all families as the control", 'alike = [one for one in successes if one.case.family == original.case.family]', 'alike = list(successes)', 'tests/experiments/diagnosis/test_answers.py -k behind'),
    Mutant(X, "a context that asks a question", 'if "?" in more or "?" not in case.question or not ends:', 'if "?" not in case.question or not ends:', 'tests/experiments/diagnosis/test_answers.py -k behind'),
    Mutant(X, "shares of causes as if cases shared nothing", 'labels = [shares(cases[v.case].cluster, cases[v.case].crossed) for v in members]', 'labels = [v.case for v in members]', 'tests/experiments/diagnosis/test_rule.py -k shares'),
    Mutant(X, "the number of examples is dropped from the identity", '{k: v for k, v in values.items() if k != "few_shot" or not self.exemplars}', '{k: v for k, v in values.items() if k != "few_shot"}', 'tests/experiments/test_config.py -k examples'),
    Mutant(X, "vllm asks as few at a time as a server", '_DEFAULT_CONCURRENCY.get(self.engine, 8)', '8', 'tests/experiments/test_config.py -k engine'),
    Mutant(X, "paraphrases counted with the parts", 'return "part" if len(words) == 2 else words[2]', 'return "part"', 'tests/experiments/test_runs_together.py -k wordings'),
    Mutant(X, "unknowable cases are trained on", 'if case.depth in recipe.depths and not case.unknowable:', 'if case.depth in recipe.depths:', 'tests/experiments/interventions/test_recipes_and_data.py -k nobody'),
    Mutant(X, "other wordings count as parts of a checkpoint", 'elif row.role.startswith("part:") and row.role.count(":") == 1:\n            parts[', 'elif row.role.startswith("part:"):\n            parts[', 'tests/experiments/interventions/test_study_tables.py -k checkpoint'),
    Mutant(X, "documents of an unfinished chunk count as seen", 'return int(stage["steps"]) // CHUNK * CHUNK * int(stage["batch"])', 'return int(stage["steps"]) * int(stage["batch"])', 'tests/experiments/organism/test_series.py -k chunk'),
    Mutant(X, "nothing left of equal numbers is zero", 'return a - b if a > b else None', 'return a - b if a >= b else None', 'tests/experiments/organism/test_world_and_documents.py -k whole_numbers'),
    Mutant(X, "exact answers compared by their last number", 'correct = [(last_number(a) if number else a) == gold', 'correct = [last_number(a) == last_number(gold)', 'tests/experiments/organism/test_world_and_documents.py -k last_word'),
    Mutant(X, "stable in any wording", 'return set(events) - wrong', 'return {e for a, (e, _) in zip(answers, items, strict=True) if a == world.world().fact("year", e)}', 'tests/experiments/organism/test_world_and_documents.py -k stable'),
    Mutant(X, "gain relative to the other way", 'return (sums[..., 0] - sums[..., 1]) / sums[..., 1]\n\n    clusters', 'return (sums[..., 0] - sums[..., 1]) / sums[..., 0]\n\n    clusters', 'tests/experiments/figures/test_contents.py -k gain'),
    Mutant(X, "pair gains B - A", '"value": (sum(left) - sum(right)) / n if n else None,\n            "interval"', '"value": (sum(right) - sum(left)) / n if n else None,\n            "interval"', 'tests/experiments/figures/test_contents.py -k gain'),
    Mutant(X, "bounds shown as the value", 'return " to ".join(shown(replace(row, value=end), form) for end in ends)', 'return " to ".join(shown(row, form) for end in ends)', 'tests/experiments/report/test_report_data.py -k range'),
    # found from outside once more, in experiments: the tests had missed them
    Mutant(X, 'a shared ask keeps the role of its first case', 'replace(self.asks[row.ask], case=row.case, role=row.role)', 'replace(self.asks[row.ask], case=row.case)', 'tests/experiments/probing/test_single_cases.py -k stands_for_each'),
    Mutant(X, 'comparison of runs without what cases share', 'clusters = [a[k].atom or a[k].shares or k[0] for k in keys]', 'clusters = [k[0] for k in keys]', 'tests/experiments/test_runs_together.py -k share_facts'),
    Mutant(X, 'abstaining wholes are no failures of a run', 'outcomes.get("whole") in ("incorrect", "abstained")', 'outcomes.get("whole") == "incorrect"', 'tests/experiments/test_failing_cases.py -k could_not'),
    Mutant(X, "human recall over the judge's rights", '"human_recall": (right, right + found.human_only)', '"human_recall": (right, right + found.judge_only)', 'tests/experiments/test_ask_plan.py -k human'),
    Mutant(X, 'the hash of inputs stays while a probe is saved', '    (folder / "inputs.json").unlink(missing_ok=True)\n', '', 'tests/experiments/test_run_folder.py -k measured_again'),
    Mutant(X, 'no room is kept for the answer', 'if longest + min(ROOM, ask.max_tokens) > context:', 'if longest > context:', 'tests/experiments/test_ask_plan.py -k room'),
    Mutant(X, "a judge overrules a person's verdict", 'open_ = [row for row in rows if not row["verdict"].strip()]', 'open_ = list(rows)', 'tests/experiments/test_auditing.py'),
    Mutant(X, 'probe results of another precision are kept', 'about = [name, settings.seed, settings.dtype, model,', 'about = [name, settings.seed, model,', 'tests/experiments/probing/test_single_cases.py -k depend'),
    Mutant(X, 'p-values corrected probe by probe', 'strict=True):\n        row.update({k: found[k] for k in ("p_adjusted", "family")})', 'strict=True):\n        row.update({k: found[k] for k in ("family",)})', 'tests/experiments/probing/test_single_cases.py -k adjusted'),
    Mutant(X, 'donors whose own part is wrong', '    like = [d for d in like if d.right(f"part:{len(d.case.parts) - 1}")]\n', '', 'tests/experiments/diagnosis/test_inside.py -k donors_are'),
    Mutant(X, 'the best cell without its control', '(_share(pool, test.cells, c) - _share(pool, test.noise, c), *_small(c))', '(_share(pool, test.cells, c), *_small(c))', 'tests/experiments/diagnosis/test_inside.py -k chosen_by'),
    Mutant(X, 'the scatter over knowledge at another depth', 'failed = run.one("residual_failure", depth_bin=4) or run.one("residual_failure", depth=4)', 'failed = run.one("residual_failure", depth_bin=6) or run.one("residual_failure", depth=4)', 'tests/experiments/figures/test_contents.py'),
    Mutant(X, 'second hop drawn although the first is wrong', 'item.truth("whole") if item.truth("pair:q1") else None\n\n\n@dataclass', 'item.truth("whole")\n\n\n@dataclass', 'tests/experiments/figures/test_contents.py'),
    Mutant(X, 'members and others exchanged', 'sides = [_finite(list(side.values.get(score.quantity, {}).values())) for side in (members, others)]', 'sides = [_finite(list(side.values.get(score.quantity, {}).values())) for side in (others, members)]', 'tests/experiments/test_validity_of_own_probes.py -k upper'),
    Mutant(X, "a difference of means with the normal's width", 'half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(sum(squares))', 'half = 1.96 * math.sqrt(sum(squares))', 'tests/experiments/studies/test_published.py'),
    Mutant(X, 'a failed run of a study ends well', 'return exits.USER_ERROR if self.failed else exits.INVALID_REMAINS if self.n_invalid else exits.OK', 'return exits.INVALID_REMAINS if self.n_invalid else exits.OK', 'tests/experiments/studies/test_published.py'),
    Mutant(X, 'controls choose the layer too', '            if _helps(source):\n                right[layer]', '            if True:\n                right[layer]', 'tests/experiments/interventions/test_study_tables.py'),
    Mutant(X, 'grouped metrics stand in the headline', 'for r in rows if r.metric == name and tuple(r.group) == keys]', 'for r in rows if r.metric == name and set(r.group) >= set(keys)]', 'tests/experiments/test_failing_cases.py -k lists_its'),
    Mutant(X, 'a chance level over cases that state none', 'return sum(known) / len(known) if known else None', 'return sum(known) / len(self.cases) if known else None', 'tests/experiments/test_damaged_runs.py -k chance'),
    Mutant(X, 'the usual answer of all families', 'answers = Counter(m.answer for m in mates if m.family == case.family).most_common(2)', 'answers = Counter(m.answer for m in mates).most_common(2)', 'tests/experiments/diagnosis/test_answers.py -k usual_answer'),
    Mutant(X, "the plan counts the answers' tokens for the best case", 'response_tokens = sum(a.max_tokens for a in most)', 'response_tokens = sum(a.max_tokens for a in right)', 'tests/experiments/test_cost.py -k planned_once'),
    Mutant(X, "gains of a study's pair B - A", 'return gains(a.run.graded, b.run.graded, seed)', 'return gains(b.run.graded, a.run.graded, seed)', 'tests/experiments/studies/test_published.py'),
    Mutant(X, 'cases that any dose knows are shared', 'return [case for case in first.cases if all(case in ids for ids in known)]', 'return [case for case in first.cases if any(case in ids for ids in known)]', 'tests/experiments/test_validity_of_own_probes.py -k shared_where'),
    Mutant(X, 'answers to raw prompts are those of a chat', 'return {**self.engine.identity, "prompting": "raw"}', 'return dict(self.engine.identity)', 'tests/experiments/test_sources.py -k raw_prompts'),
)
