// Package blob keeps bytes by the digest of their content: attachments and artifacts,
// which no event carries (specification §9.5, R7).
//
// # What it promises
//
// [Store.Put] reads content to its end and answers its digest once the content is
// durable. [Store.Stage] stops in between, so that who counts references can claim a
// digest before anything has it. [Store.Open] gives content back and [Store.Section] a
// part of it, [Store.Stat] its size, [Store.All] what there is, and [Store.Remove] takes
// it away.
//
// # Invariants
//
//   - What has a digest's name is whole: content is written beside, synced, renamed
//     into its place, and the directory is synced, in this order. A crash at any point
//     leaves all of it or nothing but a file that the next [Open] removes.
//   - Content that no longer has its digest is never served as whole: small content is
//     checked before the first byte, and of large content the last bytes are kept back
//     until the digest is known. The error is [ErrDamaged] and names the digest. To put
//     the same content again mends it.
//   - Files have mode 0600 and directories 0700, whatever the umask of the process.
//     Nothing outside the directory is read or written, through symbolic links either.
//   - After a failed sync of a directory nothing is put until the store is opened anew,
//     since nobody knows what the disk has.
//
// # Concurrency
//
// All methods may be called by any number of goroutines. Putting one content twice at
// a time is harmless. Content that is removed while it is read is read to its end. A
// directory belongs to one store at a time. There are no goroutines.
//
// # What it is not
//
// It does not know names, media types or owners, authorises nobody, and counts no
// references: who removes must know that nobody puts or needs the same content. It
// keeps no reserve of free space.
package blob
