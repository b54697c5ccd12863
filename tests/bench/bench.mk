# Benchmarks, reports and laboratories' campaigns: targets that measure. Included by the Makefile.

# make bench-hash, bench-small, bench-chan: compare optimizations with plain code (tests/bench/README.md)
# make bench-engine: measure the time of the engine for each block, also of striped transfers
.PHONY: bench-engine bench-hash bench-small bench-chan multipath-report
bench-engine bench-hash bench-small bench-chan: bench-%: $(BUILD)/tests/bench/bench_%
	$(Q)$< $(ARGS)

bench-engine: bench-movers
.PHONY: bench-movers
bench-movers: all $(BUILD)/tests/bench/bench_movers
	$(Q)BUILD='$(BUILD)' tests/bench/movers

# make bench-quick: compare ptcp with its peers and with the limit, in about a minute
# make bench: the same with more data, rounds and numbers of streams, and a real disk
# Settings such as ROUNDS and SIZE: see tests/bench/peers.
.PHONY: bench bench-quick
bench_HELPERS := $(BUILD)/tests/bench/meter $(BUILD)/tests/bench/limit

bench: export ROUNDS ?= 5
bench: export SIZE ?= 2GiB
bench: ARGS ?= large streams small start disk
bench bench-quick: all $(bench_HELPERS)
	$(Q)BUILD='$(BUILD)' tests/bench/peers $(ARGS)

$(bench_HELPERS) $(BUILD)/tests/bench/trips: $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o
	$(Q)$(link)

# make bench-trips: count the round trips of small transfers in a laboratory (root)
.PHONY: bench-trips
bench-trips: all lab-programs $(BUILD)/tests/bench/trips
	$(Q)BUILD='$(BUILD)' tests/bench/trips $(ARGS)

# make bench-slow: measure the goodput over storage with latency
.PHONY: bench-slow
bench-slow: all $(BUILD)/tests/e2e/slow.so $(BUILD)/tests/e2e/patience
	$(Q)BUILD='$(BUILD)' tests/bench/slow

# make bench-delta: compare the transfer of a changed file with rsync's
.PHONY: bench-delta
bench-delta: all $(BUILD)/tests/bench/meter $(BUILD)/tests/e2e/patience
	$(Q)BUILD='$(BUILD)' tests/bench/delta $(ARGS)

# make bench-nightly: compare the transfer of a tree that exists, changed or not, with rsync's
.PHONY: bench-nightly
bench-nightly: all $(BUILD)/tests/bench/meter $(BUILD)/tests/e2e/patience
	$(Q)BUILD='$(BUILD)' tests/bench/nightly $(ARGS)

# make bench-direct: compare direct I/O with the page cache, from disk to disk
.PHONY: bench-direct
bench-direct: all $(BUILD)/tests/bench/meter $(BUILD)/tests/e2e/patience
	$(Q)BUILD='$(BUILD)' tests/bench/direct

# make bench-relay: measure the CPU time of a relay, compared with a decrypting proxy
.PHONY: bench-relay
bench-relay: all $(BUILD)/tests/bench/proxy
	$(Q)BUILD='$(BUILD)' tests/bench/relay

# make plan-bench: measure the time of planning, compared with the plain formulation
.PHONY: plan-bench
plan-bench: setup
	$(Q)$(MAKE) --no-print-directory -j2 all $(BUILD)/tests/bench/plan/bench
	$(Q)$(BUILD)/tests/bench/plan/bench

# make plan-report: compare plans and recorded executions with the published study (a minute of CPU time)
# make plan-pictures: draw the report
# make collect-lab: record executions in the laboratory (an hour, root)
.PHONY: plan-report plan-pictures collect-lab
plan-report: $(BUILD)/tests/bench/collect/report
	$(Q)$< $(ARGS) tests/bench/collect/lab.csv tests/bench/collect/naive.csv

plan-pictures: $(BUILD)/tests/bench/collect/report
	$(Q)BUILD='$(BUILD)' tests/bench/collect/pictures

collect-lab: all lab-programs $(BUILD)/tests/e2e/jsonget $(BUILD)/tests/bench/collect/report
	$(Q)BUILD='$(BUILD)' OUT='$(or $(OUT),$(BUILD)/collect-lab.csv)' tests/bench/collect/lab
	$(Q)$(BUILD)/tests/bench/collect/report -m '$(or $(OUT),$(BUILD)/collect-lab.csv)'

# make advice-truth: measure true throughput and impact in laboratories (hours, root)
# Settings: see tests/bench/advice/truth.
.PHONY: advice-truth advice-report advice-pictures advice-witness advice-steered
advice-truth: lab-programs
	$(Q)BUILD='$(BUILD)' tests/bench/advice/truth

# make advice-report: score advice against the recorded truth
advice-report: $(BUILD)/tests/bench/advice/report
	$(Q)$< tests/bench/advice/truth.csv

advice-pictures: $(BUILD)/tests/bench/advice/report
	$(Q)BUILD='$(BUILD)' tests/bench/advice/pictures

# make advice-campaign: measure truth, advice and transfers on random paths (hours, root)
# Settings: see tests/bench/advice/campaign. Report: make campaign-report, OUT as there
.PHONY: advice-campaign campaign-report
advice-campaign: all lab-programs $(BUILD)/tests/e2e/jsonget
	$(Q)BUILD='$(BUILD)' tests/bench/advice/campaign

campaign-report: $(BUILD)/tests/bench/advice/campaign_report
	$(Q)$< $(wildcard $(or $(OUT),$(BUILD)/advice-campaign)/*/*.jsonl)

# make advice-witness: measure the impact of advice and of an advised transfer externally (five minutes, root)
advice-witness: all lab-programs $(BUILD)/tests/e2e/jsonget
	$(Q)BUILD='$(BUILD)' tests/bench/advice/witness

# make advice-steered: compare --streams auto with fixed numbers of streams (an hour, root)
advice-steered: all lab-programs $(BUILD)/tests/e2e/jsonget
	$(Q)BUILD='$(BUILD)' tests/bench/advice/steered

# make multipath-report: compare the multipath rate controller with the published study
multipath-report: $(BUILD)/tests/bench/multipath/report
	$(Q)$<

# make advice-sensitivity: show what changes with each parameter of model at 70 and 130 % of its value (an hour of CPU
# time); ARGS="60 BELIEF": on 60 simulated paths, only parameters with this text in their names
.PHONY: advice-sensitivity
vary_OBJS := $(patsubst %.c,$(BUILD)/vary/%.o,$(wildcard src/model/*.c) tests/model/drawn_path.c tests/model/packet_path.c \
	$(patsubst %,tests/lab/%.c,link red rng) $(patsubst %,tests/bench/advice/%.c,sensitivity terms))
$(vary_OBJS): $(BUILD)/vary/%.o: %.c $(flags_stamp)
	@mkdir -p $(@D)
	$(Q)$(CC) $(our_CFLAGS) $(CPPFLAGS) $(CFLAGS) -DPARAMETERS_VARY -Wno-sign-compare -MMD -MP -c -o $@ $<

$(patsubst %,$(BUILD)/tests/bench/advice/%,sensitivity terms): $(BUILD)/tests/bench/advice/%: $(BUILD)/vary/tests/bench/advice/%.o \
	$(filter-out $(BUILD)/vary/tests/bench/%,$(vary_OBJS)) $(filter $(BUILD)/src/core/%,$(libptcp_OBJS))
	@mkdir -p $(@D)
	$(Q)$(link) -lm

# make advice-terms: show which terms of model/belief.c improve answers on simulated paths of single packets (minutes);
# ARGS="100 40001": 100 paths of each limit, from this seed on
.PHONY: advice-terms
advice-terms: $(BUILD)/tests/bench/advice/terms
	$(Q)$< $(ARGS)

advice-sensitivity: $(BUILD)/tests/bench/advice/sensitivity
	$(Q)$< $(ARGS)
