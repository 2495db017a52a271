// Package admission runs the waiting rooms of sales: buyers join a line, and the admitter calls
// them in the order of the draw as the stock permits.
//
// A signed ticket contains a buyer's number. The draw turns the number into a place in the line,
// its position. Redis keeps one number for each buyer, and the watermark: the last position that
// was called. MySQL grants the numbers in ranges, and gets each watermark after the call.
package admission
