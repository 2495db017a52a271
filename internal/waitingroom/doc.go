// Package waitingroom has what a waiting room computes: the draw, the tickets, and when the rate
// calls a position. It reads no clock and contacts no server. Package roommodel of the tests has
// the rule by which the watermark moves.
//
// # Numbers and positions
//
// A buyer who joins gets the next number, 1 for the first. The draw turns a number into a position
// in the line, also from 1. The watermark is the last position that was admitted. So the room needs
// two numbers: how many joined, and the watermark.
//
// # Draw
//
// The numbers 1 to size, of all who joined before the start, are shuffled. Later numbers are their
// own positions. The shuffle is a permutation that three public values determine: the seed, the
// digest and the size. The commitment is the SHA-256 of the seed. The room publishes the commitment
// when the sale is exposed, and the three values at the start. Everybody can then recompute every
// position, with Verify or with the few lines of Draw in another language.
//
// # Digest
//
// The digest is a chain over the groups in which buyers joined: sha1hex(previous digest .. line),
// with "" before the first group. A line is the joins of one group in the order of their numbers:
// "buyer:number", separated by spaces. scripts/lua/join.lua, which assigns the numbers, computes
// it. SHA-1 is the only hash that Redis' Lua has. So the digest costs 40 bytes and one hash per
// group.
//
// It is a chain because a change of any join changes all later digests. Hashes of single joins that
// are added or XORed are weaker: a caller who chooses many joins can solve for the result that they
// want. A chain per join would not depend on the groups, but costs a hash per join inside the
// script that everybody waits for. So a recomputation of the digest needs the groups. One of the
// positions needs only the digest.
//
// SHA-1 has collisions: an operator can construct two lists with one digest. That moves nobody,
// because both lists have the same draw. So a digest does not prove which buyers joined.
//
// Buyers cannot influence the draw, because they do not know the seed. Nor can an operator who does
// not join. An operator who reads the seed early and joins last, as buyers of their own, can try
// buyer ids until the draw suits them. docs/explanation/waiting-room.md has the details.
package waitingroom
