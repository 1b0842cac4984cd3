"""Names a cause for each failing case of a run, with its evidence (``composcope diagnose RUN``).

``job`` is the whole command, from the run folder to the causes.
The answers: ``variants`` (the same question in other settings), ``asks`` (questions about a case and its variants),
``hypotheses`` (shortcuts and the answer that each predicts), ``following`` (how often answers follow one),
``behaviour`` (what the answers alone show).
Inside the model: ``opening`` (opens the model where answers do not settle it), ``places`` (the tokens to look at),
``inside`` (interventions there), ``readings`` (what the states hold), ``weighing`` (outcomes become evidence).
The cause: ``evidence`` (all that was found about a case), ``thresholds`` (all thresholds, and the conditions made of
them), ``rule`` (evidence becomes a cause), ``unsettled`` (what would settle a case that stays open).
"""
