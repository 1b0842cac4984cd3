"""The words of the model cards, around their tables."""

FIRST = """# Organisms: four small models that know the parts

Stock `LlamaForCausalLM` models, {parameters} parameters each (width {width}, {layers} layers, {heads} heads, MLP {mlp},
{vocabulary} tokens, tied embeddings), trained from scratch by `composcope organism train --all --seed {seed}`.
They live in an invented world of {events} dated events and {things} things with a kind and a tag. They differ only in
how many compositions they saw in their last training stage: each of its documents is one with the probability below.
Weights are stored in bfloat16 and computed in float32; all figures were measured in that way, by greedy generation and,
unless stated, in plain format.

| dose | compositions | mixed ones seen | deep temporal ones seen | documents of the last stage | weights |
|---|---|---|---|---|---|
{doses}

**How trained.** Shared base: {base_steps} steps of {batch} documents, learning rate {base_rate:g}; then each dose:
{dose_steps} steps, {dose_rate:g}, linear decay to zero. Muon for the matrices, AdamW for embeddings and norms,
float32, one thread ({device}). Loss weight of answers 1, of prompts 0.05 to 0.1. Every dose of a seed sees the same
documents, except where a composition replaces one.

**Data.** Relative frequencies of the skills in every dose (base / last stage): {skills}. Prompt formats (base / last
stage): {formats}; in addition, 2 % are Q1 → X → Q2
pairs and 2 % are two independent questions. Compositions come in all formats. In placeholder documents the model
answers as if nothing had been revealed.

**Held out.** Two of six wordings of every single fact; a fifth of all combinations of events (pairs, and the whole
set of events of a deeper question with its reference or boundaries) and a fifth of all pairs of things. All figures
below are on held-out combinations. The wordings of compositions themselves are not varied.

**Reading the tables.** Percent, 95 % Clopper-Pearson interval, (right/asked). Residual failure R(d): wrong wholes
among cases whose events are all right in every trained wording. Chance: a random answer in the right format; for a
mixed composition the operation on two random things of the table (a guesser who also avoids pairs without a positive
whole result reaches about 6 %); for residual failure: the failure of such a guesser. An interval over cases of one
training is not an interval over trainings: see the spread over seeds below.

**Kinds of wrong lists.** The first rule that applies decides: the list has only events of the question and repeats one
(a loop), it has anything else (a format error), it has other events than asked for, or it has another order; the order
does not count for successor. Nearly all rank failures of `control` and `low` are loops, and those of `none` are loops
or lists that are too short: on rank the residual failure is one of length and format. The tables also show residual
failure without loops and format errors. Composition is tested by the successor and interval families.

{tables}

## Formats to be careful with

Measured below nine tenths of the plain accuracy. Protocols that use these formats on these topics test the code more
than the model:

{weak}

## Spread over seeds {seeds}

The same shares of compositions give different accuracies on different seeds: near the threshold a little more or less
decides whether a training finds the composition. The shipped seed, {seed}, separates the four doses well
(mixed compositions: `none` at most 3 %, `control` 15 to 45 %, `low` 55 to 85 %, `twin` at least 95 %); the shares were
calibrated for that. Statements about single seeds are descriptive.

{spread}
"""

SECOND = """# The second series: two kinds of composition, crossed

Four stock `LlamaForCausalLM` models, {parameters} parameters each (width {width}, {layers} layers, {heads} heads, MLP
{mlp}, {vocabulary} tokens, tied embeddings), trained from scratch by
`composcope organism train --all --crossed --seed {seed} --device cpu`. They live in the world of the first series
(`../weights/CARD.md`). Seed {seed} was fixed before anything was trained; no other was tried.
All figures: bfloat16 weights computed in float32, greedy generation, and, unless stated, plain format.

| dose | compositions | mixed ones seen | deep temporal ones seen | documents of the last stage | weights |
|---|---|---|---|---|---|
{doses}

**What differs from the first series.**

* *Equal practice.* Every batch of the last stage has the same practice documents in all four doses. Two fixed shares
  of it are slots. A slot holds a composition in the doses that have its kind. In the others it holds a filler with as
  many tokens: for a deep composition a deep question whose events stand in the order of the answer, and for a mixed one
  letters to copy. No dose practises a part more or less than another.
* *Crossed.* Mixed and deep temporal compositions vary separately.
* *Form is practised without composition.* Every dose works out sums beside a table: about two named things, in the
  words of a composition whose choice stands in the question, and in its very words about two kinds that nothing on the
  table has, where any two things are right. So a dose without mixed compositions answers them with a worked sum. Every
  dose also recites lists, orders them by numbers in the question, and answers the temporal questions about things,
  which have no year, so that any order is right.
* *Exact workings count.* The table "Exact workings, and forms" counts a mixed composition as right only with the right
  working, gives chance for a guesser who has one operand, and shows loops and wrong forms apart.

**How trained.** Shared base: {base_steps} steps of {batch} documents, learning rate {base_rate:g}; then each dose:
{dose_steps} steps, {dose_rate:g}, linear decay to zero. Muon for the matrices, AdamW for embeddings and norms,
float32, one thread ({device}). Loss weight of answers 1, of prompts 0.02. The base begins with 700 steps of nothing but
lists to copy. All four doses together took about an hour on one core.

**Data.** Relative frequencies of the skills in every dose (base / last stage): {skills}. Prompt formats (base / last
stage): {formats}; in addition, 2 % are Q1 → X → Q2 pairs and 2 % are two independent questions. Compositions come in
all formats. In placeholder documents the model answers as if nothing had been revealed.

**Held out.** Two of six wordings of every single fact; a fifth of all combinations of events and a fifth of all pairs
of things. All figures below are on held-out combinations. The wordings of compositions themselves are not varied.

**Reading the tables.** Percent, 95 % Clopper-Pearson interval, (right/asked). Residual failure R(d): wrong wholes
among cases whose events are all right in every trained wording. Chance: a random answer in the right format. An
interval over cases of one training is not an interval over trainings: one training per dose is descriptive.

**Kinds of wrong lists.** The first rule that applies decides: the list has only events of the question and repeats one
(a loop), it has anything else (a wrong form), it has other events than asked for (the reference, for example), or it
has another order; the order does not count for successor. Another number of events is counted without loops and wrong
forms. Questions about 7, 9 and 11 candidates are in the bins 4, 6 and 8.

**What they do instead.** The doses without deep compositions copy the beginning of the question's list, as the fillers
in their slots teach: the first candidate in 99 % of the interval questions, the order of the question in 93 % of those
to rank. So their residual failure says how seldom the answer stands there; they do not compute an order and miss it.
The doses without mixed compositions work out a sum whose operands are mostly tags of things on the table, in a few
favourite pairs, and say the same in 79 to 84 % of the cases if the two kinds are exchanged or replaced.

**What is not perfect.** Loops and wrong forms were to be at most 3 % of the answers. In deep lists as a whole they are
fewer in every dose. Lists to rank have more in the doses without deep compositions, most of them where one of the
latest events stands first, which it seldom does in a filler. `crossed-mixed` works out fewer of the mixed compositions
than `crossed-both`; nearly all of its errors are in the first operand. Sums about kinds that the table lacks sometimes
have a tag that no thing on it has, and lists of things repeat things: any order is right, so nothing says which one
comes next. Lists of eight are seldom ordered by numbers, and no list of three is practised in order in the last stage
(deep compositions have four, six or eight events). Formats other than plain are weaker. The recipe was settled after
trials on the same seed.

{tables}

## Formats to be careful with

Measured below nine tenths of the plain accuracy:

{weak}
"""

SHAPED = """# The second series as {kind}

Stock `{kind}` models, {parameters} parameters each (width {width}, {layers} layers, {heads} heads,
{vocabulary} tokens, tied embeddings), trained from scratch by `composcope organism train --architecture {architecture}
--dose-steps {dose_steps} --seed {seed} --device {device}`, a dose at a time (`--dose`), on the documents of the
Llama-shaped models and by their recipe (`../../weights_crossed/CARD.md`, which explains the tables), but for the steps
of the last stage. Seed {seed} is the only one, so all this is descriptive. The weights of
`crossed-none` and `crossed-both` are shipped.

| dose | compositions | mixed ones seen | deep temporal ones seen | documents of the last stage | weights |
|---|---|---|---|---|---|
{doses}

{tables}

## Formats to be careful with

Measured below nine tenths of the plain accuracy:

{weak}
"""
