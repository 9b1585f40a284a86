#!/bin/sh
# A backup into a new folder, named by its time, then a drill of that backup: it is restored into a folder of its own, started there
# without sending anything, counted and thrown away. A backup keeps its name only after that, so that an interrupted or useless one
# is never taken for one; then all but the newest KEEP are removed.
#   backup.sh FOLDER KEEP COMMAND...      such as: backup.sh /var/lib/fingerpost/backups 14 npx fingerpost
# The settings of the server come from the environment. With FINGERPOST_BACKUP_PASSPHRASE or FINGERPOST_BACKUP_PASSPHRASE_FILE the master
# key is in the backup as well, sealed.
set -eu

if [ "$#" -lt 3 ]; then
  echo 'usage: backup.sh FOLDER KEEP COMMAND...' >&2
  exit 2
fi
folder=$1
keep=$2
shift 2
case $keep in
'' | *[!0-9]* | 0*)
  echo 'KEEP takes a number of backups, at least 1' >&2
  exit 2
  ;;
esac

umask 077
mkdir -p "$folder"
# What an interrupted run left behind.
rm -rf "$folder"/*.unfinished "$folder"/fingerpost-drill-*
name=$(date -u +%Y-%m-%dT%H-%M-%SZ)
key=
if [ -n "${FINGERPOST_BACKUP_PASSPHRASE:-}${FINGERPOST_BACKUP_PASSPHRASE_FILE:-}" ]; then
  key=--with-master-key
fi
"$@" backup "$folder/$name.unfinished" $key
"$@" restore-drill --backup "$folder/$name.unfinished" --in "$folder"
mv "$folder/$name.unfinished" "$folder/$name"
# Names sort like the times they are of.
for old in $(ls -1 "$folder" | grep '^[0-9-]*T[0-9-]*Z$' | sort | head -n "-$keep"); do
  rm -rf "${folder:?}/$old"
done
