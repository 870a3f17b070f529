create table users(name, password);
insert into users(name, password) values('al', 'hunter2');
update users set password = 'correct horse' where name = 'al';
select count(*) from users where name = 'al' and password = 'hunter2';
