package model

// Rule is one rule of the protocol, which a schedule can leave out.
type Rule int

// The rules, in the order of an order's path.
const (
	None Rule = iota
	OrderNumbersByAPI
	AtomicReserve
	RedisClock
	Outbox
	OutboxTrimmedByID
	CommitEndsPending
	RepublishAge
	ReturnIsNack
	SettleAfterCommit
	AckAfterCommit
	ExistingNumbersChecked
	DuplicatesByNumber
	LockedStock
	BatchSplit
	RetryInPlace
	Lease
	LeasePerSale
	LeaseInEveryRelease
	EpochInLoad
	LoadFenced
	LoadKeepsOpenGate
	AdoptFences
	AdoptWithinLimit
	FencingToken
	Barrier
	BarrierAfterDeadline
	BarrierThroughQueue
	RepublishBeforeBarrier
	LateOrdersAdopted
	LateOrdersNeverWait
	ReleaseByID
	ReleaseByEpoch
	ReleaseWithHolding
	ReleaseUnderLease
	HoldingsInDB
	PathsOfOneEpoch
	SecondRead
	PromiseOnConfirm
	TombstoneBeforeAnswer
	TombstoneReleases
	lastRule
)

// names says for each rule what the protocol does without it.
var names = [...]string{
	None:                   "all rules kept",
	OrderNumbersByAPI:      "order numbers by INCR in Redis",
	AtomicReserve:          "check and reserve in two calls",
	RedisClock:             "sale window by the API's clock",
	Outbox:                 "no outbox",
	OutboxTrimmedByID:      "outbox trimmed by length",
	CommitEndsPending:      "the confirm ends pending",
	RepublishAge:           "pending orders republished at any age",
	ReturnIsNack:           "a returned message counts as confirmed",
	SettleAfterCommit:      "settled before the commit",
	AckAfterCommit:         "acknowledged before the commit",
	ExistingNumbersChecked: "existing order numbers not checked",
	DuplicatesByNumber:     "duplicates counted by affected rows",
	LockedStock:            "no lock and no compare-and-swap on the stock",
	BatchSplit:             "a batch with a bad order rejected whole",
	RetryInPlace:           "database errors nacked, delivery limit 5",
	Lease:                  "no lease",
	LeasePerSale:           "the script cache as the lease of all sales",
	LeaseInEveryRelease:    "scripts of an older release without the lease",
	EpochInLoad:            "load accepts any epoch",
	LoadFenced:             "load checks the epoch and not the fence",
	LoadKeepsOpenGate:      "load overwrites a sale whose gate is open",
	AdoptFences:            "late orders waived behind a shut gate without a fence",
	AdoptWithinLimit:       "late orders adopted beyond the buyer's limit",
	FencingToken:           "no fencing token in MySQL and no fence in load",
	Barrier:                "no barrier",
	BarrierAfterDeadline:   "barrier before the publish deadline has passed",
	BarrierThroughQueue:    "an empty queue as the barrier",
	RepublishBeforeBarrier: "pending orders not republished before the barrier",
	LateOrdersAdopted:      "late orders written without a reservation",
	LateOrdersNeverWait:    "late orders wait for the gate before the barrier",
	ReleaseByID:            "releases without an id",
	ReleaseByEpoch:         "releases without an epoch",
	ReleaseWithHolding:     "releases without the buyer's holding",
	ReleaseUnderLease:      "releases behind a shut gate or without the lease",
	HoldingsInDB:           "no holdings in the database",
	PathsOfOneEpoch:        "unused paths outlive their epoch",
	SecondRead:             "failed answered without a second read of MySQL",
	PromiseOnConfirm:       "202 without a confirm in time",
	TombstoneBeforeAnswer:  "no tombstone before an order is answered as lost",
	TombstoneReleases:      "units adopted for a tombstone not released",
}

// String says what the protocol does without the rule.
func (r Rule) String() string { return names[r] }

// Rules lists every rule that can be left out.
func Rules() []Rule {
	var all []Rule
	for r := None + 1; r < lastRule; r++ {
		all = append(all, r)
	}
	return all
}
