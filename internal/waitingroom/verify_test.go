package waitingroom

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/testing/property"
)

// publishedDraw returns a published draw and the places of all its numbers and two later ones.
func publishedDraw(seed Seed, size uint32) (Published, []Place) {
	p := Published{
		Commitment: seed.Commitment(), Seed: seed.Hex(),
		Digest: strings.Repeat("7", 40), Size: size,
	}
	d := NewDraw(seed, []byte(p.Digest), size)
	var places []Place
	for number := int64(1); number <= int64(size)+2; number++ {
		places = append(places, Place{number, d.Position(number)})
	}
	return p, places
}

func TestVerify_FindsASingleSwappedPosition(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		p, places := publishedDraw(seedOf(rapid.Int().Draw(t, "seed")),
			rapid.Uint32Range(0, 2000).Draw(t, "size"))
		if wrong, err := Verify(p, places); err != nil || len(wrong) > 0 {
			t.Fatalf("the draw itself: %v, %v", wrong, err)
		}
		i := rapid.IntRange(0, len(places)-2).Draw(t, "i")
		j := rapid.IntRange(i+1, len(places)-1).Draw(t, "j")
		a, b := places[i].Position, places[j].Position
		places[i].Position, places[j].Position = b, a
		wrong, err := Verify(p, places)
		if err != nil || len(wrong) != 2 || wrong[0] != (Mismatch{places[i], a}) ||
			wrong[1] != (Mismatch{places[j], b}) {
			t.Fatalf("swapped %d and %d: %v, %v", i, j, wrong, err)
		}
	})
}

func TestVerify_RefusesASeedThatWasNotCommitted(t *testing.T) {
	p, places := publishedDraw(seedOf(1), 10)
	p.Seed = seedOf(2).Hex()
	_, err := Verify(p, places)
	require.ErrorIs(t, err, ErrCommitment)
	p.Seed = ""
	_, err = Verify(p, places)
	require.ErrorIs(t, err, errBadSeed)
}

func TestVerify_FindsNumbersThatDoNotExist(t *testing.T) {
	p, _ := publishedDraw(seedOf(1), 10)
	wrong, err := Verify(p, []Place{{0, 0}, {-3, -3}, {11, 11}})
	require.NoError(t, err)
	require.Len(t, wrong, 2)
}

func TestVerify_FindsAnotherDigestOrSize(t *testing.T) {
	p, places := publishedDraw(seedOf(1), 1000)
	other := p
	other.Digest = strings.Repeat("8", 40)
	wrong, err := Verify(other, places)
	require.NoError(t, err)
	require.Greater(t, len(wrong), 900)
	other = p
	other.Size++
	wrong, err = Verify(other, places)
	require.NoError(t, err)
	require.Greater(t, len(wrong), 900)
}
