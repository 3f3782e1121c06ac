package id

import (
	"fmt"
	"strconv"
	"strings"
)

// An origin is <host>/o/<organization_id> for the first log of an organization. Logs that succeed a
// frozen log append /2, /3, ... to it.

// Split returns the origin of the organization's first log and the number of this log in the line
// of logs, starting at 1.
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

// Organization parses the organization ID in the origin.
func (o Origin) Organization() (Organization, error) {
	first, _ := o.Split()
	_, name, _ := strings.Cut(string(first), "/o/")
	organization, err := ParseOrganization(name)
	if err != nil || organization.String() != name {
		return Organization{}, fmt.Errorf("organization of an origin: %w", ErrMalformed)
	}
	return organization, nil
}

// Below returns the path of the log's tiles after /o/: the organization ID, followed by the number
// of the log if it is not the first.
func (o Origin) Below(organization Organization) string {
	if _, n := o.Split(); n > 1 {
		return organization.String() + "/" + strconv.Itoa(n)
	}
	return organization.String()
}
