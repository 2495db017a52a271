package model

// Rule is one thing that the design asks for and that can be left out here.
type Rule int

// The rules, in the order of design.md.
const (
	None Rule = iota
	NumbersByAPI
	OneScript
	RedisClock
	Outbox
	OutboxTrimmedByID
	CommitEndsPending
	FeedAge
	ReturnIsNack
	SettleAfterCommit
	AckAfterCommit
	Dedupe
	DedupeByNumber
	LockedGoods
	BatchNotRefusedWhole
	TroubleRetriedInPlace
	LeaseCheck
	LeaseOfEachSale
	LeaseInEveryRelease
	EpochInLoad
	LoadFenced
	LoadBehindGate
	AdoptFences
	AdoptWithinLimit
	FencingToken
	Barrier
	BarrierAfterDeadline
	BarrierThroughQueue
	FeedBeforeBarrier
	LateAdopted
	LateNotWaitedFor
	ReleaseByID
	ReleaseByEpoch
	ReleaseWithHolding
	ReleaseUnderLease
	HoldingsInDB
	PathsOfOneEpoch
	LookAgain
	PromiseOnConfirm
	TombBeforeWord
	TombGivesBack
	lastRule
)

// Names says each rule as it is left out.
var names = [...]string{
	None:                  "all rules on",
	NumbersByAPI:          "order numbers by INCR of Redis",
	OneScript:             "check and take in two calls",
	RedisClock:            "the window judged by the API's clock",
	Outbox:                "no outbox",
	OutboxTrimmedByID:     "outbox trimmed by length",
	CommitEndsPending:     "the confirm ends pending",
	FeedAge:               "pending fed again whatever its age",
	ReturnIsNack:          "a returned message counts as confirmed",
	SettleAfterCommit:     "settled before the commit",
	AckAfterCommit:        "acknowledged before the commit",
	Dedupe:                "no look at which numbers are there",
	DedupeByNumber:        "duplicates told by affected rows",
	LockedGoods:           "no lock and no compare-and-swap on the goods",
	BatchNotRefusedWhole:  "a batch with a bad order is refused whole",
	TroubleRetriedInPlace: "the database's trouble nacked, delivery limit 5",
	LeaseCheck:            "no lease",
	LeaseOfEachSale:       "scripts in the cache as the lease of all sales",
	LeaseInEveryRelease:   "an old release's script beside it, without the lease",
	EpochInLoad:           "load takes any epoch",
	LoadFenced:            "load asks for a newer epoch only, and not for the fence",
	LoadBehindGate:        "load takes a sale whose gate somebody has opened meanwhile",
	AdoptFences:           "late orders waived behind a shut gate put up no fence",
	AdoptWithinLimit:      "late orders taken in past the buyer's limit",
	FencingToken:          "no fencing: neither a token in MySQL nor a fence at load",
	Barrier:               "no barrier",
	BarrierAfterDeadline:  "barrier without waiting out the publish deadline",
	BarrierThroughQueue:   "the queue's length as the barrier",
	FeedBeforeBarrier:     "pending not fed before the barrier",
	LateAdopted:           "late orders written without taking from Redis",
	LateNotWaitedFor:      "late orders wait for the gate in front of the barrier",
	ReleaseByID:           "releases without an id",
	ReleaseByEpoch:        "releases without an epoch",
	ReleaseWithHolding:    "releases without the buyer's holding",
	ReleaseUnderLease:     "releases given behind a shut gate, or to a master without the lease",
	HoldingsInDB:          "no holdings in the database",
	PathsOfOneEpoch:       "unused paths outlive their epoch",
	PromiseOnConfirm:      "202 also where no confirm came in time",
	TombBeforeWord:        "an order that was told lost may be written when it comes",
	TombGivesBack:         "what was adopted for an order that was told lost stays taken",
	LookAgain:             "failed is said without looking into MySQL again",
}

// String says what is left out.
func (r Rule) String() string { return names[r] }

// Rules lists all that can be left out.
func Rules() []Rule {
	var all []Rule
	for r := None + 1; r < lastRule; r++ {
		all = append(all, r)
	}
	return all
}
