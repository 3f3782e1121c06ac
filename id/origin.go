package id

import (
	"fmt"
	"strconv"
	"strings"
)

// An origin is <host>/o/<organization_id> for the first log of an organization, and
// the same with /2, /3, ... behind it for those that succeed a frozen one.

// Split returns the origin of the first log of the line and the number of this one
// in it, from 1.
func (o Origin) Split() (first Origin, number int) {
	at := strings.LastIndexByte(string(o), '/')
	if at < 0 {
		return o, 1
	}
	n, err := strconv.ParseUint(string(o[at+1:]), 10, 31)
	if err != nil || n < 2 || strconv.FormatUint(n, 10) != string(o[at+1:]) {
		return o, 1
	}
	return o[:at], int(n)
}

// Next returns the origin of the log that succeeds this one.
func (o Origin) Next() Origin {
	first, n := o.Split()
	return Origin(fmt.Sprintf("%s/%d", first, n+1))
}

// Organization reads the organization that the origin names.
func (o Origin) Organization() (Organization, error) {
	first, _ := o.Split()
	_, name, _ := strings.Cut(string(first), "/o/")
	organization, err := ParseOrganization(name)
	if err != nil || organization.String() != name {
		return Organization{}, fmt.Errorf("organization of an origin: %w", ErrMalformed)
	}
	return organization, nil
}

// Below returns the path element behind /o/ of the log's tiles: the organization's id,
// and from the second log on its number.
func (o Origin) Below(organization Organization) string {
	if _, n := o.Split(); n > 1 {
		return organization.String() + "/" + strconv.Itoa(n)
	}
	return organization.String()
}
