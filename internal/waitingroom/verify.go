package waitingroom

import "errors"

// ErrCommitment means that a seed is not the one whose hash was published before buyers joined.
var ErrCommitment = errors.New("the commitment is not the SHA-256 of the seed")

// Published is what a room has published about its draw. Its JSON is a part of the public status of
// a room after the start.
type Published struct {
	Commitment string `json:"drawCommitment"` // 64 hex digits, public since the exposure
	Seed       string `json:"drawSeed"`       // 64 hex digits
	Digest     string `json:"drawDigest"`     // of all who joined before the start
	Size       uint32 `json:"drawSize"`       // how many joined before the start
}

// Place is a number and its position in the line, both from 1.
type Place struct {
	Number   int64 `json:"number"`
	Position int64 `json:"position"`
}

// Mismatch is a place that the draw did not assign.
type Mismatch struct {
	Place
	Drawn int64 `json:"drawn"` // the position that the draw assigned to the number
}

// Draw returns the draw that was published. The error is errBadSeed or ErrCommitment.
func (p Published) Draw() (*Draw, error) {
	seed, err := ParseSeed(p.Seed)
	if err != nil {
		return nil, err
	}
	if seed.Commitment() != p.Commitment {
		return nil, ErrCommitment
	}
	return NewDraw(seed, []byte(p.Digest), p.Size), nil
}

// Verify recomputes places from public data alone. It returns those that differ from the draw, in
// the order of places. The error is errBadSeed or ErrCommitment.
func Verify(p Published, places []Place) ([]Mismatch, error) {
	d, err := p.Draw()
	if err != nil {
		return nil, err
	}
	var wrong []Mismatch
	for _, place := range places {
		drawn := d.Position(place.Number)
		if place.Number < 1 || drawn != place.Position {
			wrong = append(wrong, Mismatch{place, drawn})
		}
	}
	return wrong, nil
}
