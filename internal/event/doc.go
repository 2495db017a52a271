// Package event reports the changes of orders and sales to merchants' programs: as a list to read
// (GET /admin/events), and as what package webhook sends.
//
// The transaction that changes an order or a sale also writes its events, so no change lacks its
// event and no event lacks its change. The Sequencer assigns positions afterwards. Positions grow,
// and become visible in ascending order: a reader that continues after the last position that it
// has seen misses no event and sees none twice, also where transactions commit late. The events of
// one order are in the order of its changes.
//
// Events hold no data. Items are built from the rows of the sale and the order when they are read:
// the status is that of the event's type. Of the other fields the sale's total and external id may
// change. A late message adds the buyer and the units to a lost order.
package event
