package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"flashsale.dev/seckill/internal/waitingroom"
)

// drawCmd checks draws of waiting rooms.
type drawCmd struct {
	Verify verifyDrawCmd `cmd:"" help:"Recompute positions of a waiting room's draw from public data alone. It contacts no server."`
}

// verifyDrawCmd recomputes positions. It contacts no server: whoever does not trust the room copies
// what the room published and runs this command elsewhere.
type verifyDrawCmd struct {
	Seed       string  `xor:"source" required:"" help:"The published seed, 64 hex digits."`
	File       string  `xor:"source" required:"" help:"File with the room's public status as JSON, - for standard input. Its field places, a list of {number, position}, is compared with the draw."`
	Digest     string  `help:"The published digest of all who joined; with --seed."`
	Size       uint32  `help:"How many joined before the start; with --seed."`
	Commitment string  `help:"The commitment that was published before the start; with --seed. The seed must belong to it."`
	Numbers    []int64 `arg:"" optional:"" name:"number" help:"Numbers whose positions are printed."`
}

// drawFile is what a file contains: the public status of a room, or the API's answer that has it,
// and places that somebody claims, in the status or beside it.
type drawFile struct {
	waitingroom.Published
	Data   *drawFile           `json:"data,omitempty"`
	Places []waitingroom.Place `json:"places"`
}

// drawResult is what is printed.
type drawResult struct {
	Places     []waitingroom.Place    `json:"places"`
	Checked    int                    `json:"checked"`
	Mismatches []waitingroom.Mismatch `json:"mismatches"`
}

// Run prints the positions of the numbers and the claims that the draw contradicts. A draw that
// does not verify has an exit code of its own, so that a script need not read the output.
func (c *verifyDrawCmd) Run(s *session) error {
	claims, err := c.read(s.stdin)
	if err != nil {
		return err
	}
	draw, err := claims.Draw()
	if err != nil {
		return drawError(err)
	}
	wrong, err := waitingroom.Verify(claims.Published, claims.Places)
	if err != nil {
		return drawError(err)
	}
	// append keeps an empty list from being null in JSON
	result := drawResult{
		Places: []waitingroom.Place{}, Checked: len(claims.Places),
		Mismatches: append([]waitingroom.Mismatch{}, wrong...),
	}
	for _, number := range c.Numbers {
		if number < 1 {
			return usage(fmt.Errorf("number %d: numbers begin at 1", number))
		}
		place := waitingroom.Place{Number: number, Position: draw.Position(number)}
		result.Places = append(result.Places, place)
	}
	if err := s.print(result, "%s", result.text()); err != nil || len(wrong) == 0 {
		return err
	}
	return &exitError{fmt.Errorf("%d of %d places are not those of the draw", len(wrong),
		len(claims.Places)), codeBadDraw}
}

// read returns the published draw of the flags or of the file.
func (c *verifyDrawCmd) read(stdin io.Reader) (drawFile, error) {
	if c.File == "" {
		return c.fromFlags()
	}
	if c.Digest != "" || c.Size != 0 || c.Commitment != "" {
		return drawFile{}, usage(errors.New("--file has the digest, the size and the commitment"))
	}
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return drawFile{}, usage(err)
		}
		defer file.Close()
		stdin = file
	}
	var claims drawFile
	if err := json.NewDecoder(stdin).Decode(&claims); err != nil {
		return drawFile{}, usage(fmt.Errorf("read the published draw: %w", err))
	}
	if claims.Data != nil {
		claims.Published = claims.Data.Published
		claims.Places = append(claims.Places, claims.Data.Places...)
	}
	return claims, nil
}

// fromFlags returns the draw that the flags describe. Without a commitment it uses the seed's own
// hash. The positions are then those of the seed, and nothing proves when the seed was chosen.
func (c *verifyDrawCmd) fromFlags() (drawFile, error) {
	if len(c.Numbers) == 0 {
		return drawFile{}, usage(errors.New("--seed needs a number"))
	}
	published := waitingroom.Published{
		Commitment: c.Commitment, Seed: c.Seed, Digest: c.Digest, Size: c.Size,
	}
	if c.Commitment == "" {
		seed, err := waitingroom.ParseSeed(c.Seed)
		if err != nil {
			return drawFile{}, usage(err)
		}
		published.Commitment = seed.Commitment()
	}
	return drawFile{Published: published}, nil
}

// drawError adds the exit code of a seed that is malformed, or that nobody committed to.
func drawError(err error) error {
	if errors.Is(err, waitingroom.ErrCommitment) {
		return &exitError{err, codeBadDraw}
	}
	return usage(err)
}

// text formats a result.
func (r drawResult) text() string {
	var lines []string
	for _, p := range r.Places {
		lines = append(lines, fmt.Sprintf("number %d has position %d", p.Number, p.Position))
	}
	for _, w := range r.Mismatches {
		lines = append(lines, fmt.Sprintf("number %d claims position %d, and the draw assigned %d",
			w.Number, w.Position, w.Drawn))
	}
	if r.Checked > 0 {
		lines = append(lines, fmt.Sprintf("%d places checked, %d wrong", r.Checked,
			len(r.Mismatches)))
	}
	if len(lines) == 0 {
		lines = append(lines, "the seed is the one that was committed to")
	}
	return strings.Join(lines, "\n")
}
