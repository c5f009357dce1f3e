package main

// sqliteProgram writes for four seconds and prints groups a second.
const sqliteProgram = `
import os, shutil, sqlite3, sys, time
home = sys.argv[1]
os.mkdir(home)
try:
    db = sqlite3.connect(os.path.join(home, "db"), isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE fact (session TEXT, sequence INTEGER, event TEXT, run TEXT, run_sequence INTEGER, bytes BLOB, PRIMARY KEY (session, sequence)) WITHOUT ROWID")
    db.execute("CREATE UNIQUE INDEX run ON fact (run, run_sequence)")
    body, head, groups, begun = bytes(420), 0, 0, time.monotonic()
    while time.monotonic() - begun < 4:
        db.execute("BEGIN IMMEDIATE")
        for session in range(128):
            session = "session-%d" % (session + 128 * (groups // 128 % 2))
            db.executemany("INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?)",
                [(session, head + i, "%d.abcdefgh" % (head + i), session + "-run", head + i, body) for i in (1, 2, 3)])
        db.execute("COMMIT")
        groups += 128
        if groups // 128 % 2 == 0:
            head += 3
    print(groups / (time.monotonic() - begun))
finally:
    shutil.rmtree(home)
`
