#ifndef FORGETFUL_SYNCFS_H
#define FORGETFUL_SYNCFS_H

/* FUSE does not pass on syncfs(2): setting this extended attribute of anything stands for it. */
#define SYNCFS_ATTRIBUTE "user.forgetful.syncfs"

#endif
