// Package admission runs the waiting rooms of sales: buyers join a line, and the admitter calls them
// in the order of the draw as the stock permits.
//
// A number is a buyer's ticket; the draw turns it into a place in the line, its position. Redis keeps
// one number for each buyer and a watermark, the positions below which were called. MySQL grants the
// numbers in ranges, and has the watermark of at most some seconds ago.
package admission
