package narad
import "testing"
func BenchmarkZScan(b *testing.B){ for b.Loop() { var s scanner; var few [24]member; s.members=few[:0]; s.scan(benchRecords[0].text)} }
func BenchmarkZValid(b *testing.B){ d:=[]byte(benchRecords[0].text); for b.Loop() { valid(d)} }
func BenchmarkZDecode(b *testing.B){ d:=[]byte(benchRecords[0].text); for b.Loop() { Decode(d)} }
