// Package accesscode signs and verifies the access codes of sales, and claims single ones.
//
// A code is 20 digits of Crockford's base 32, in groups of five: 100 bits.
//
//	48 bits  MAC: truncated HMAC-SHA256 of goods, kind, and the bits below
//	20 bits  end: hours since 1970; 0: none
//	32 bits  serial number
//
// A code verifies without a lookup, so a wrong one costs no storage. One guess is right with a
// probability of 2^-48 for each secret: 20,000 guesses a second find one code in 446 years.
//
// A shared code serves every buyer. A single code belongs to the first buyer who presents it while
// the sale sells, for ever: MySQL's primary key decides. Random paths are signed for one buyer and
// only after the claim is committed, so the steps after it need not know codes.
package accesscode
